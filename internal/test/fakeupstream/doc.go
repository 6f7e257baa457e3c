// Package fakeupstream is a strict, scriptable stand-in for OpenAI's Chat Completions and Responses APIs and for Anthropic's
// Messages API.
//
// It rejects the requests that these APIs reject, with the same error bodies. It answers from a script, whole or as server-sent
// events, and can fail in every way an upstream fails. It simulates the prompt cache, records every request it receives, and can
// act as the model that writes summaries. The demo uses it as its upstream, so it does not import testing. It uses no clock and no
// randomness: the same requests in the same order always get the same answers.
//
// A Server listens on its own loopback port:
//
//	up := fakeupstream.New(fakeupstream.Options{ContextWindow: 128_000})
//	if err := up.Start(); err != nil { ... }
//	defer up.Close()
//	up.Script(fakeupstream.Answer{Message: message}, fakeupstream.RateLimited("2"))
//	client.BaseURL = up.URL() + "/v1"
//
// It is also an http.Handler.
//
// Each protocol has two files: one builds the answers, the other (chat_rules.go and so on) holds the rules for requests. Rules
// report to a verdict, which keeps the first complaint.
package fakeupstream
