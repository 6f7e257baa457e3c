// Package served asks model servers for the context window they serve a model with. vLLM, OpenRouter, llama.cpp, LM Studio, LiteLLM and
// Ollama report it. It takes precedence over the model's documented window, since operators configure windows of their own.
package served

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

const (
	maxKept      = 4096             // answers in memory
	maxAge       = time.Hour        // after which a server is asked again
	timeout      = 10 * time.Second // of an inquiry with all its requests
	minWindow    = 512              // tokens; no model has a smaller window
	maxInquiries = 4                // at a time; further ones are skipped
)

// Windows holds the windows that servers have reported. It asks in the background and is safe for concurrent use.
type Windows struct {
	transport func(tenant string) http.RoundTripper
	known     lru.Cache[server, answer]
	ctx       context.Context
	cancel    context.CancelFunc

	mu   sync.Mutex // held while an inquiry starts, so that Close waits for it
	work errgroup.Group
}

// answer is the latest answer of a server.
type answer struct {
	tokens int // 0: none yet, or the server does not report its window
	asked  time.Time
}

// server is a model at a base URL.
type server struct{ base, model string }

// New returns a Windows that makes its requests for a tenant with the tenant's transport. Call Close when done.
func New(transport func(tenant string) http.RoundTripper) *Windows {
	known := lru.New[server, answer](maxKept)
	w := &Windows{transport: transport, known: known}
	w.work.SetLimit(maxInquiries)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Close cancels all inquiries and waits for them.
func (w *Windows) Close() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.work.Wait() // inquiries return no errors
}

// Window returns the window of a model, in tokens, as reported by the server at baseURL, such as http://localhost:8000/v1. It returns 0 if the
// server has not reported one.
func (w *Windows) Window(baseURL, model string) int {
	last, _ := w.known.Get(server{baseURL, clip(model)})
	return last.tokens
}

// Ask asks the server in the background, on behalf of a tenant and with the key of the client's requests, unless it was asked recently. Call it
// only after the server has answered a request for the model, so that a client cannot make the proxy ask for models that do not exist.
func (w *Windows) Ask(tenant, baseURL, key, model string) {
	at := server{baseURL, clip(model)}
	last, _ := w.known.Get(at)
	base, err := url.Parse(baseURL)
	if err != nil || time.Since(last.asked) < maxAge {
		return
	}
	i := inquiry{transport: w.transport(tenant), base: base, key: strings.Clone(key), model: at.model}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	w.known.Add(at, answer{last.tokens, time.Now()})
	begun := w.work.TryGo(func() error {
		defer func() { _ = recover() }() // a malformed answer must not end the process
		ctx, cancel := context.WithTimeout(w.ctx, timeout)
		defer cancel()
		if tokens := i.run(ctx); tokens >= minWindow {
			w.known.Add(at, answer{tokens, time.Now()})
		}
		return nil
	})
	if !begun {
		w.known.Add(at, last)
	}
}

// clip bounds a name that a client chose. It returns a copy.
func clip(model string) string { return strings.Clone(model[:min(len(model), 256)]) }
