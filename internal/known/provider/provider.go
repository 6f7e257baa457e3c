// Package provider knows the providers of models that the proxy serves without being told their addresses, and how to tell for which of them
// a client has written a request.
package provider

import "strings"

// Name names a provider. It is the key of the provider's section in the configuration.
type Name string

// The providers. ChatGPT serves Codex with a ChatGPT account, whose tokens OpenAI's API does not accept.
const (
	OpenAI    Name = "openai"
	Anthropic Name = "anthropic"
	ChatGPT   Name = "chatgpt"
	Gemini    Name = "gemini"
)

// Names lists all providers, the usual one first.
func Names() []Name { return []Name{OpenAI, Anthropic, ChatGPT, Gemini} }

// BaseURL returns the provider's own address.
func (n Name) BaseURL() string {
	switch n {
	case Anthropic:
		return "https://api.anthropic.com/v1"
	case ChatGPT:
		return "https://chatgpt.com/backend-api/codex" // as in ModelProviderInfo::to_api_provider of Codex
	case Gemini:
		return "https://generativelanguage.googleapis.com/v1beta"
	}
	return "https://api.openai.com/v1"
}

// Request is what tells the provider of a request.
type Request struct {
	Protocol string // of its path, as the dialects are named; empty: the path belongs to none
	Gemini   bool   // the path is one of Gemini's own API
	Header   func(name string) string
}

// Of returns the provider for which a client has written a request. The protocol decides if the path has one. Other paths, such as /models,
// several providers have, so the headers decide that only clients of one of them send.
func Of(r Request) Name {
	has := func(names ...string) bool {
		for _, name := range names {
			if r.Header(name) != "" {
				return true
			}
		}
		return false
	}
	switch {
	case r.Protocol == "messages":
		return Anthropic
	case r.Protocol == "gemini":
		return Gemini
	case has("chatgpt-account-id"):
		return ChatGPT
	case r.Protocol != "":
		return OpenAI
	case r.Gemini, has("x-goog-api-key"):
		return Gemini
	case has("anthropic-version", "anthropic-beta", "x-api-key"):
		return Anthropic
	}
	return OpenAI
}

// prefixes are what the keys of providers begin with.
var prefixes = [...]struct {
	prefix string
	of     Name
}{
	{"sk-ant-", Anthropic},
	{"sk-proj-", OpenAI}, {"sk-svcacct-", OpenAI}, {"sk-admin-", OpenAI},
	{"AIza", Gemini},
}

// OfKey returns the provider that issued a key, empty if the form of the key does not tell.
func OfKey(key string) Name {
	for _, known := range prefixes {
		if strings.HasPrefix(key, known.prefix) {
			return known.of
		}
	}
	return ""
}
