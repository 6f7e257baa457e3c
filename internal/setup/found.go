// Package setup looks at what a user's machine has, keys, model servers and settings of agents, and writes a configuration for it. It neither
// shows nor writes the value of a key.
package setup

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Key is an environment variable that holds a provider's key, by name only.
type Key struct {
	Variable string
	Provider string
	BaseURL  string // the provider's
	API      string // in which its models are called, as in llms.*.api
	Cheap    string // a model of the provider that writes good summaries at a low price
}

// keys lists the providers whose keys are looked for. The models and their prices are in the table of package model.
var keys = []Key{
	{"OPENAI_API_KEY", "OpenAI", "https://api.openai.com/v1", "chat", "gpt-5-mini"},
	{"ANTHROPIC_API_KEY", "Anthropic", "https://api.anthropic.com/v1", "messages", "claude-haiku-5-5"},
	{"GEMINI_API_KEY", "Google", "https://generativelanguage.googleapis.com/v1beta", "gemini", "gemini-3.1-flash-lite"},
	{"OPENROUTER_API_KEY", "OpenRouter", "https://openrouter.ai/api/v1", "chat", "openai/gpt-5-mini"},
}

// Keys returns those that the environment has.
func Keys(getenv func(string) string) (found []Key) {
	for _, k := range keys {
		if getenv(k.Variable) != "" {
			found = append(found, k)
		}
	}
	return found
}

// KeyFor returns the key of a provider at a base URL, if the environment has it.
func KeyFor(baseURL string, getenv func(string) string) (Key, bool) {
	for _, k := range Keys(getenv) {
		if strings.TrimRight(baseURL, "/") == k.BaseURL {
			return k, true
		}
	}
	return Key{}, false
}

// Server is a model server on this machine.
type Server struct {
	Name    string
	BaseURL string
	Models  []string
}

// Address is where a server may be.
type Address struct{ Name, BaseURL string }

// Usual returns where model servers listen unless they are told otherwise. llama.cpp uses the port that Dewpoint does, so it is asked too.
func Usual() []Address {
	return []Address{
		{"Ollama", "http://127.0.0.1:11434/v1"}, {"vLLM", "http://127.0.0.1:8000/v1"}, {"LM Studio", "http://127.0.0.1:1234/v1"},
		{"llama.cpp", "http://127.0.0.1:8080/v1"}, {"llama.cpp", "http://127.0.0.1:8081/v1"},
	}
}

// Bounds of what a server is asked.
const (
	askTimeout = time.Second
	maxAnswer  = 1 << 20
	maxModels  = 50
)

// Servers asks for the models at each address at the same time, and returns the servers that have some, in the order of the addresses. A running
// Dewpoint is no model server.
func Servers(ctx context.Context, at []Address) (found []Server) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	all := make([]Server, len(at))
	var asking sync.WaitGroup
	for i, a := range at {
		asking.Go(func() { all[i] = ask(ctx, a) })
	}
	asking.Wait()
	for _, s := range all {
		if len(s.Models) > 0 {
			found = append(found, s)
		}
	}
	return found
}

// makers names servers by the owner that they report of their models.
var makers = map[string]string{"library": "Ollama", "llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio"}

func ask(ctx context.Context, a Address) Server {
	s := Server{Name: a.Name, BaseURL: a.BaseURL}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.BaseURL+"/models", nil)
	if err != nil {
		return s
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // not through the proxy of the environment
	resp, err := client.Do(req)
	if err != nil {
		return s
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Dewpoint-Request-Id") != "" {
		return s
	}
	var list struct {
		Data []struct {
			ID      string
			OwnedBy string `json:"owned_by"`
		}
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&list) != nil {
		return s
	}
	for _, m := range list.Data[:min(len(list.Data), maxModels)] {
		if m.ID != "" {
			s.Models = append(s.Models, m.ID)
		}
		if name := makers[m.OwnedBy]; name != "" {
			s.Name = name
		}
	}
	return s
}
