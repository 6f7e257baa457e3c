package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// gemini answers requests in Gemini's own protocol, which the strict upstream does not know, with the same steps. It is safe for concurrent use.
type gemini struct {
	model *model

	mu       sync.Mutex
	answered int
}

// beside answers these requests, and leaves all others to a server.
func (g *gemini) beside(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, method, named := strings.Cut(r.URL.Path, ":")
		if !named || !strings.HasSuffix(method, "enerateContent") {
			server.ServeHTTP(w, r)
			return
		}
		text, err := json.Marshal(map[string]any{
			"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{g.part()}}, "finishReason": "STOP"}},
			"usageMetadata": map[string]int{"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020},
		})
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if strings.HasPrefix(method, "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			text = fmt.Appendf(nil, "data: %s\n\n", text)
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(text) // a client that has left is judged by its requests
	})
}

// part is the next step: a call of the client's tool, or the end.
func (g *gemini) part() any {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered++; g.answered >= steps {
		return map[string]string{"text": finished}
	}
	input := strings.ReplaceAll(g.model.client.Input, "COMMAND", fmt.Sprintf("echo step %d; seq 1 200", g.answered))
	return map[string]any{"functionCall": map[string]any{"name": g.model.client.Tool, "args": json.RawMessage(input)}}
}
