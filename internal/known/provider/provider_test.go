package provider

import (
	"net/http"
	"testing"
)

func TestRequestsGoToTheProviderThatTheirClientMeans(t *testing.T) {
	for _, c := range []struct {
		protocol string
		gemini   bool
		header   http.Header
		want     Name
	}{
		{"chat", false, nil, OpenAI},
		{"responses", false, nil, OpenAI},
		{"messages", false, nil, Anthropic},
		{"responses", false, http.Header{"Chatgpt-Account-Id": {"a"}}, ChatGPT},
		{"messages", false, http.Header{"Chatgpt-Account-Id": {"a"}}, Anthropic},
		{"chat", false, http.Header{"X-Api-Key": {"k"}}, OpenAI},
		{"", false, nil, OpenAI},
		{"", false, http.Header{"Authorization": {"Bearer k"}}, OpenAI},
		{"", false, http.Header{"Anthropic-Version": {"2023-06-01"}}, Anthropic},
		{"", false, http.Header{"Anthropic-Beta": {"oauth-2025-04-20"}}, Anthropic},
		{"", false, http.Header{"X-Api-Key": {"k"}}, Anthropic},
		{"", false, http.Header{"Chatgpt-Account-Id": {"a"}}, ChatGPT},
		{"", true, nil, Gemini},
		{"gemini", true, http.Header{"Authorization": {"Bearer k"}}, Gemini},
		{"", false, http.Header{"X-Goog-Api-Key": {"k"}}, Gemini},
	} {
		if got := Of(Request{c.protocol, c.gemini, c.header.Get}); got != c.want {
			t.Errorf("%q with %v goes to %s, want %s", c.protocol, c.header, got, c.want)
		}
	}
}

func TestKeysTellTheirProvider(t *testing.T) {
	for key, want := range map[string]Name{
		"sk-ant-api03-x": Anthropic, "sk-ant-oat01-x": Anthropic, "sk-proj-x": OpenAI, "AIzaSyX": Gemini, "sk-x": "", "": "", "ey.x.y": "",
	} {
		if got := OfKey(key); got != want {
			t.Errorf("%q is a key of %q, want %q", key, got, want)
		}
	}
}
