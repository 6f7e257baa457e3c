package fakeupstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

func Example() {
	up := fakeupstream.New(fakeupstream.Options{ContextWindow: 128_000})
	if err := up.Start(); err != nil {
		panic(err)
	}
	defer up.Close()
	up.Script(fakeupstream.Answer{Content: "Hello."}, fakeupstream.RateLimited("2"))

	for range 2 {
		resp, err := http.Post(up.URL()+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header.Get("Retry-After"), strings.Contains(string(body), "Hello."))
	}
	fmt.Println(len(up.Requests()), up.Unplayed())
	// Output:
	// 200  true
	// 429 2 false
	// 2 0
}

func ExampleValidate() {
	err := fakeupstream.Validate([]byte(`{"model":"gpt-4o","messages":[{"role":"tool","tool_call_id":"a","content":"42"}]}`))
	fmt.Println(err.Status, err.Param)
	fmt.Println(err.Message)
	// Output:
	// 400 messages.[0].role
	// Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.
}
