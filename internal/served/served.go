// Package served asks model servers with what context window they serve a model. Many tell: vLLM, OpenRouter, llama.cpp, LM
// Studio, LiteLLM and Ollama. A server's word counts for more than what is generally known of the model: the same model has
// another window wherever its operator chose one.
package served

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
)

const (
	kept     = 4096             // answers, the most recently used
	believed = time.Hour        // how long an answer counts; servers change
	timeout  = 10 * time.Second // of one inquiry, all its requests included
	smallest = 512              // tokens; no model has a smaller window
	asking   = 4                // inquiries under way at most; further ones are left for later
)

// Windows is what servers have told so far. It asks off the path of requests and is safe for concurrent use.
type Windows struct {
	transport http.RoundTripper
	now       func() time.Time
	known     *lru.Cache[server, told]
	ctx       context.Context
	cancel    context.CancelFunc

	mu   sync.Mutex // keeps Close from waiting while an inquiry begins
	work errgroup.Group
}

// told is what a server answered, or has not yet.
type told struct {
	tokens int // 0: it does not tell
	asked  time.Time
}

// server is a model at a base URL.
type server struct{ base, model string }

// New makes a Windows that asks by transport. Close it.
func New(transport http.RoundTripper, now func() time.Time) (*Windows, error) {
	known, err := lru.New[server, told](kept)
	if err != nil {
		return nil, fmt.Errorf("new served windows: %w", err)
	}
	w := &Windows{transport: transport, now: now, known: known}
	w.work.SetLimit(asking)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// Close ends all inquiries and waits for their end.
func (w *Windows) Close() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.work.Wait() // inquiries give no errors
}

// Window is what the server at a base URL, such as http://localhost:8000/v1, told of a model's window, in tokens. 0: nothing.
func (w *Windows) Window(baseURL, model string) int {
	t, _ := w.known.Get(server{baseURL, clip(model)})
	return t.tokens
}

// Ask asks the server in the background, unless it was asked already, with the key that requests to it carry. Call it
// once the server has answered a request for the model: then the model is there, and a client cannot make the proxy ask for
// names that do not exist.
func (w *Windows) Ask(baseURL, key, model string) {
	at := server{baseURL, clip(model)}
	last, _ := w.known.Get(at)
	base, err := url.Parse(baseURL)
	if err != nil || w.now().Sub(last.asked) < believed {
		return
	}
	i := inquiry{transport: w.transport, base: base, key: strings.Clone(key), model: at.model}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	w.known.Add(at, told{last.tokens, w.now()})
	begun := w.work.TryGo(func() error {
		defer func() { _ = recover() }() // a strange answer must not end the process
		ctx, cancel := context.WithTimeout(w.ctx, timeout)
		defer cancel()
		if tokens := i.run(ctx); tokens >= smallest {
			w.known.Add(at, told{tokens, w.now()})
		}
		return nil
	})
	if !begun {
		w.known.Add(at, last)
	}
}

// clip bounds a name that a client chose.
func clip(model string) string { return strings.Clone(model[:min(len(model), 256)]) }
