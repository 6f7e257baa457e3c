package fakeupstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// step is one request and the cached tokens it should have.
type step struct {
	messages []string
	tools    string
	model    string
	key      string
	want     int
}

// fixed returns a message of the given size in bytes, which is also its size in tokens in these tests.
func fixed(role string, size int) string {
	const frame = `{"role":"","content":""}`
	return fmt.Sprintf(`{"role":"%s","content":"%s"}`, role, strings.Repeat("x", size-len(frame)-len(role)))
}

func TestCachedTokens(t *testing.T) {
	system, question, answer := fixed("system", 1000), fixed("user", 100), fixed("assistant", 300)
	tools := `[` + toolF + `]` // 92 bytes
	long := []string{system, question, answer}
	for name, steps := range map[string][]step{
		"first seen":    {{messages: long, want: 0}},
		"same again":    {{messages: long}, {messages: long, want: 1408 - 128}}, // 1400 in steps of 128
		"grown":         {{messages: long}, {messages: append(long[:3:3], question), want: 1280}, {messages: append(long[:3:3], question, answer), want: 1408}},
		"shorter":       {{messages: long}, {messages: long[:2], want: 1024}},
		"too short":     {{messages: long[1:]}, {messages: long[1:], want: 0}},
		"changed first": {{messages: long}, {messages: []string{fixed("system", 1001), question, answer}, want: 0}},
		"changed last":  {{messages: long}, {messages: []string{system, question, fixed("assistant", 301)}, want: 1024}},
		"a byte more":   {{messages: long}, {messages: []string{system, strings.Replace(question, ":", ": ", 1), answer}, want: 0}},
		"gap":           {{messages: long}, {messages: []string{system, answer, question}, want: 0}},
		"model":         {{messages: long}, {messages: long, model: "other", want: 0}},
		"key":           {{messages: long}, {messages: long, key: "other", want: 0}},
		"tools count":   {{messages: long[:2], tools: tools}, {messages: long[:2], tools: tools, want: 1152}},
		"other tools":   {{messages: long, tools: tools}, {messages: long, want: 0}, {messages: long, tools: tools, want: 1408}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fakeupstream.Options{CountTokens: func(raw []byte) int { return len(raw) }})
			for i, step := range steps {
				if got := cachedOf(t, s, step); got != step.want {
					t.Errorf("step %d: %d cached tokens, want %d", i, got, step.want)
				}
			}
		})
	}
}

// cachedOf sends the messages and returns the cached tokens of the usage, which the record must have too.
func cachedOf(t *testing.T, s *fakeupstream.Server, send step) int {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m%s","messages":[%s]}`, send.model, strings.Join(send.messages, ","))
	if send.tools != "" {
		body = strings.TrimSuffix(body, "}") + `,"tools":` + send.tools + `}`
	}
	r := newPost(guard(t), t, s.URL()+"/v1/chat/completions", body)
	r.Header.Set("Authorization", "Bearer k"+send.key)
	resp, err := newClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Usage struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	all := s.Requests()
	if recorded := all[len(all)-1].CachedTokens; recorded != got.Usage.Details.Cached {
		t.Errorf("recorded %d, sent %d", recorded, got.Usage.Details.Cached)
	}
	return got.Usage.Details.Cached
}

func TestColdCache(t *testing.T) {
	s := start(t, fakeupstream.Options{CountTokens: func(raw []byte) int { return len(raw) }})
	long := []string{fixed("user", 2048)}
	// What fails is not billed and not remembered.
	s.Script(fakeupstream.ServerError())
	cachedOf(t, s, step{messages: long})
	for i, want := range []int{0, 2048} {
		if got := cachedOf(t, s, step{messages: long}); got != want {
			t.Errorf("%d: %d, want %d", i, got, want)
		}
	}
	s.DropCache()
	if got := cachedOf(t, s, step{messages: long}); got != 0 {
		t.Errorf("cold cache: %d", got)
	}
}
