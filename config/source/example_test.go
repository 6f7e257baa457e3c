package source_test

import (
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
)

func ExampleLoad() {
	_, err := source.Load(source.Input{
		Env:   []string{"DEWPOINT_CONDENSER_MAX_SIZE=10", "DEWPOINT_CONDENSER_KEEP_FIRST=5"},
		Flags: map[string]string{"listen": "localhost"},
	})
	var found config.Problems
	errors.As(err, &found)
	for _, problem := range found {
		fmt.Println(problem.Key, "from", problem.Origin)
	}
	// Output:
	// listen from --listen
	// condenser.keep_first from DEWPOINT_CONDENSER_KEEP_FIRST
}
