package fakeupstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
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
