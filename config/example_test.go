package config_test

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/config"
)

func ExampleLoad() {
	_, err := config.Load(config.Sources{
		Env:   []string{"DEWPOINT_CONDENSER_MAX_SIZE=10", "DEWPOINT_CONDENSER_KEEP_FIRST=5"},
		Flags: map[string]string{"listen": "localhost"},
	})
	for _, problem := range config.Problems(err) {
		fmt.Println(problem.Key, "from", problem.Origin)
	}
	// Output:
	// listen from --listen
	// condenser.keep_first from DEWPOINT_CONDENSER_KEEP_FIRST
}
