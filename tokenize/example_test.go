package tokenize_test

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

func ExampleRegistry() {
	registry := tokenize.New()
	encoder, err := registry.Encoder(tokenize.O200k)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(encoder.Count("Dew forms where warm air meets a cold surface."))
	fmt.Println(encoder.Message(session.Content{Role: "user", Text: "Hello!"}))
	// Output:
	// 11
	// 6
}

func ExampleCalibration() {
	var calibration tokenize.Calibration
	calibration.Observe("gpt-4o", 10_000, 10_400, false) // upstream's usage.prompt_tokens was 4 % above our count
	fmt.Println(calibration.Adjust("gpt-4o", 5_000))
	// Output: 5200
}
