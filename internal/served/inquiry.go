package served

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// mostRead bounds what is read of one answer, in bytes: OpenRouter's list of models has about a megabyte.
const mostRead = 8 << 20

// inquiry asks one server for one model's window.
type inquiry struct {
	ctx    context.Context
	client http.Client
	base   *url.URL
	header http.Header
	model  string
}

// run asks for the list that every server has. Where that does not tell, it shows whose server it is, and what else to ask. It
// gives 0 if the server does not tell.
func (i *inquiry) run() int {
	var answer struct{ Data []entry }
	if i.get(i.base.JoinPath("models"), &answer) != nil {
		return 0
	}
	e := i.find(answer.Data)
	if e == nil {
		return 0
	}
	if n := e.window(); n > 0 {
		return n
	}
	switch e.OwnedBy {
	case "llamacpp":
		return i.llamaCPP()
	case "organization_owner":
		return i.lmStudio()
	case "library":
		return i.ollama()
	case "openai":
		if i.base.Hostname() != "api.openai.com" { // LiteLLM says so of every model
			return i.liteLLM()
		}
	}
	return 0
}

// entry is one model of a list. Each server has its own name for the window.
type entry struct {
	ID      string `json:"id"`
	OwnedBy string `json:"owned_by"`

	MaxModelLen   int `json:"max_model_len"`         // vLLM, SGLang
	ContextLength int `json:"context_length"`        // OpenRouter, Together
	ContextWindow int `json:"context_window"`        // Groq
	Loaded        int `json:"loaded_context_length"` // LM Studio: what is served
	Max           int `json:"max_context_length"`    // LM Studio, Mistral: what the model could have

	TopProvider struct {
		ContextLength int `json:"context_length"`
	} `json:"top_provider"` // OpenRouter: the provider that requests go to first may serve less
}

func (e *entry) window() int {
	if top := e.TopProvider.ContextLength; top > 0 && top < e.ContextLength {
		return top
	}
	for _, n := range [...]int{e.MaxModelLen, e.ContextLength, e.ContextWindow, e.Loaded, e.Max} {
		if n > 0 {
			return n
		}
	}
	return 0
}

func (i *inquiry) find(models []entry) *entry {
	for at := range models {
		if id := models[at].ID; strings.EqualFold(id, i.model) || strings.EqualFold(id, i.model+":latest") {
			return &models[at]
		}
	}
	return nil
}

// llamaCPP: its server tells the context of a slot, which may be a part of the model's.
func (i *inquiry) llamaCPP() int {
	var answer struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	_ = i.get(i.root("props"), &answer)
	return answer.Settings.Context
}

// lmStudio has a list of its own next to OpenAI's.
func (i *inquiry) lmStudio() int {
	var answer struct{ Data []entry }
	_ = i.get(i.root("api/v0/models"), &answer)
	if e := i.find(answer.Data); e != nil {
		return e.window()
	}
	return 0
}

// ollama serves a model with the context it was loaded with, or with the model file's num_ctx, and cuts what is longer without
// a word.
func (i *inquiry) ollama() int {
	var running struct {
		Models []struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		}
	}
	_ = i.get(i.root("api/ps"), &running)
	for _, m := range running.Models {
		if strings.EqualFold(m.Name, i.model) || strings.EqualFold(m.Name, i.model+":latest") {
			return m.Context
		}
	}
	var shown struct {
		Parameters string
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	body, err := json.Marshal(map[string]string{"model": i.model})
	if err != nil || i.send(http.MethodPost, i.root("api/show"), body, &shown) != nil {
		return 0
	}
	for line := range strings.Lines(shown.Parameters) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == "num_ctx" {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return max(n, 0)
		}
	}
	for key, value := range shown.Info {
		if strings.HasSuffix(key, ".context_length") {
			n, _ := strconv.Atoi(string(value))
			return max(n, 0)
		}
	}
	return 0
}

// liteLLM lists what its configuration says of each model.
func (i *inquiry) liteLLM() int {
	var answer struct {
		Data []struct {
			Name string `json:"model_name"`
			Info struct {
				MaxInput int `json:"max_input_tokens"`
			} `json:"model_info"`
		}
	}
	_ = i.get(i.base.JoinPath("model/info"), &answer)
	for _, m := range answer.Data {
		if strings.EqualFold(m.Name, i.model) {
			return m.Info.MaxInput
		}
	}
	return 0
}

// root is a path below the root of the server, outside the API under /v1.
func (i *inquiry) root(path string) *url.URL {
	at := *i.base
	at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), "/v1")
	return at.JoinPath(path)
}

func (i *inquiry) get(at *url.URL, into any) error { return i.send(http.MethodGet, at, nil, into) }

func (i *inquiry) send(method string, at *url.URL, body []byte, into any) error {
	r, err := http.NewRequestWithContext(i.ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask for window: %w", err)
	}
	r.Header = i.header.Clone()
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", UserAgent)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := i.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask for window: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for window: %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostRead)).Decode(into); err != nil {
		return fmt.Errorf("ask for window: %w", err)
	}
	return nil
}
