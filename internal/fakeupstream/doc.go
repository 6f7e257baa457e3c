// Package fakeupstream is a strict, scriptable stand-in for OpenAI's Chat Completions and Responses APIs, and for Anthropic's
// Messages API.
//
// It is the judge of every test: it refuses what these refuse, with the error bodies they send; it answers what a
// script tells it to, whole or as server-sent events, and can fail in every way an upstream fails; it simulates the
// prompt cache; and it records all it received. It also plays the model that writes summaries, so that one server is
// enough for a whole run, and it is the upstream inside the demo (hence no testing import and no clock: the same
// requests in the same order always give the same answers).
//
// A Server listens on a loopback port of its own:
//
//	up := fakeupstream.New(fakeupstream.Options{ContextWindow: 128_000})
//	if err := up.Start(); err != nil { ... }
//	defer up.Close()
//	up.Script(fakeupstream.Answer{Message: message}, fakeupstream.RateLimited("2"))
//	client.BaseURL = up.URL() + "/v1"
//
// It is an http.Handler as well, for httptest. Validate judges one request body on its own.
//
// Each protocol has two files: what is answered, and the rules by which a request is refused (chat_rules.go and so on). What a
// rule finds wrong goes into a verdict, of which the first complaint counts.
package fakeupstream
