package engine

import (
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// learnt is the context windows that upstreams told of in their errors, by tenant and model, and which models want roles to
// alternate. It is bounded, since a client picks the model's name, and forgets windows after a while: servers change.
type learnt struct {
	windows    *lru.Cache[learntKey, learntWindow]
	alternates *lru.Cache[servedModel, struct{}]
}

// servedModel is a model of a tenant's upstream.
type servedModel struct{ tenant, upstream, model string }

type learntKey struct{ tenant, model string }

type learntWindow struct {
	tokens int
	at     time.Time
}

const (
	learntKept = 1024
	learntFor  = 6 * time.Hour
	learntMin  = 512 // tokens; no model has a smaller window
)

func newLearnt() (*learnt, error) {
	windows, err := lru.New[learntKey, learntWindow](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new window cache: %w", err)
	}
	alternates, err := lru.New[servedModel, struct{}](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of roles: %w", err)
	}
	return &learnt{windows, alternates}, nil
}

// purge forgets all: upstreams may have changed.
func (l *learnt) purge() {
	l.windows.Purge()
	l.alternates.Purge()
}

func (l *learnt) set(tenant, model string, tokens int, now time.Time) {
	l.windows.Add(learntKey{tenant, head(model)}, learntWindow{max(tokens, learntMin), now})
}

// window is the smaller of what was configured and what was learnt.
func (l *learnt) window(tenant, model string, configured int, now time.Time) int {
	w, ok := l.windows.Get(learntKey{tenant, head(model)})
	if ok && now.Sub(w.at) < learntFor && (configured == 0 || w.tokens < configured) {
		return w.tokens
	}
	return configured
}
