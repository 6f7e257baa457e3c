package served

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// UserAgent is the User-Agent of inquiries.
const UserAgent = "dewpoint"

// maxResponse bounds a response, in bytes. OpenRouter's list of models has about a megabyte.
const maxResponse = 8 << 20

// inquiry asks a server for the window of a model.
type inquiry struct {
	transport http.RoundTripper // must not follow redirects: requests carry a credential
	base      *url.URL
	key       string
	model     string
}

// run asks for the list of models, which every server has. If the list does not contain the window, it shows which server this is, and
// therefore where else to ask. run returns 0 if the server does not report the window.
func (i *inquiry) run(ctx context.Context) int {
	e := i.find(fetch[list](ctx, i, i.base.JoinPath("models"), nil))
	if n := e.window(); n > 0 {
		return n
	}
	switch e.OwnedBy {
	case "llamacpp": // reports the context of a slot, which may be a part of the model's
		return fetch[props](ctx, i, i.root("props"), nil).Settings.Context
	case "organization_owner": // LM Studio has its own list in addition to OpenAI's
		return i.find(fetch[list](ctx, i, i.root("api/v0/models"), nil)).window()
	case "library":
		return i.ollama(ctx)
	case "openai":
		if i.base.Hostname() != "api.openai.com" { // LiteLLM reports this owner for every model
			return i.liteLLM(ctx)
		}
	}
	return 0
}

type list struct{ Data []entry }

// entry is a model in a list. Each server has another name for the window.
type entry struct {
	ID      string `json:"id"`
	OwnedBy string `json:"owned_by"`

	MaxModelLen   int `json:"max_model_len"`         // vLLM, SGLang
	ContextLength int `json:"context_length"`        // OpenRouter, Together
	ContextWindow int `json:"context_window"`        // Groq
	Loaded        int `json:"loaded_context_length"` // LM Studio: the window served
	Max           int `json:"max_context_length"`    // LM Studio, Mistral: the model's maximum

	TopProvider struct {
		ContextLength int `json:"context_length"`
	} `json:"top_provider"` // OpenRouter: the provider that requests go to first may serve less
}

// window returns the window of the first field that is set, 0 if none is.
func (e entry) window() int {
	if top := e.TopProvider.ContextLength; top > 0 && top < e.ContextLength {
		return top
	}
	return cmp.Or(max(e.MaxModelLen, 0), max(e.ContextLength, 0), max(e.ContextWindow, 0), max(e.Loaded, 0), max(e.Max, 0))
}

// find returns the model's entry in a list, an empty one if there is none.
func (i *inquiry) find(models list) (none entry) {
	for _, e := range models.Data {
		if i.isNamed(e.ID) {
			return e
		}
	}
	return none
}

// isNamed reports whether a name is the model's. Ollama appends a tag to names without one.
func (i *inquiry) isNamed(name string) bool {
	return strings.EqualFold(name, i.model) || strings.EqualFold(name, i.model+":latest")
}

type props struct {
	Settings struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
}

// ollama returns the context that a model was loaded with, or else the num_ctx of its model file. Ollama silently cuts longer prompts.
func (i *inquiry) ollama(ctx context.Context) int {
	type running struct {
		Models []struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		}
	}
	for _, m := range fetch[running](ctx, i, i.root("api/ps"), nil).Models {
		if i.isNamed(m.Name) {
			return m.Context
		}
	}
	type shown struct {
		Parameters string
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	model := fetch[shown](ctx, i, i.root("api/show"), map[string]string{"model": i.model})
	for line := range strings.Lines(model.Parameters) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == "num_ctx" {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	for key, value := range model.Info {
		if strings.HasSuffix(key, ".context_length") {
			n, _ := strconv.Atoi(string(value))
			return n
		}
	}
	return 0
}

// liteLLM returns the window in LiteLLM's configuration.
func (i *inquiry) liteLLM(ctx context.Context) int {
	type listed struct {
		Data []struct {
			Name string `json:"model_name"`
			Info struct {
				MaxInput int `json:"max_input_tokens"`
			} `json:"model_info"`
		}
	}
	for _, m := range fetch[listed](ctx, i, i.base.JoinPath("model/info"), nil).Data {
		if strings.EqualFold(m.Name, i.model) {
			return m.Info.MaxInput
		}
	}
	return 0
}

// root returns the URL of a path outside the API under /v1.
func (i *inquiry) root(path string) *url.URL {
	at := *i.base
	at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), "/v1")
	return at.JoinPath(path)
}

// fetch sends a GET request, or a POST request if there is a question, and decodes the response. On an error, it returns the part that could
// be decoded.
func fetch[T any](ctx context.Context, i *inquiry, at *url.URL, question any) (answer T) {
	method, body := http.MethodGet, []byte(nil)
	if question != nil {
		method = http.MethodPost
		body, _ = json.Marshal(question) // a map of strings cannot fail
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return answer
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", UserAgent)
	if i.key != "" {
		r.Header.Set("Authorization", "Bearer "+i.key)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := i.transport.RoundTrip(r)
	if err != nil {
		return answer
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		_ = json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(&answer) // a malformed entry must not hide the others
	}
	return answer
}
