package engine_test

import (
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// looking is a condenser that records how much of a request upstream is said to have in its cache.
type looking struct{ cached int }

func (l *looking) Name() string { return "looking" }

func (l *looking) Condense(in condense.Input) condense.Decision {
	l.cached = in.Thread.Sent.Cached(in.View)
	return condense.Decision{}
}

// TestCachedIsOfTheSamePrefix: cached tokens that upstream reported apply only to requests with the same tools, system prompt, model, upstream
// and key.
func TestCachedIsOfTheSamePrefix(t *testing.T) {
	asks := func(head string, n int) *body {
		b := says(n)
		b.bytes = append([]byte(head), b.bytes[len(`{"model":"m","messages":[`):]...)
		return b
	}
	head := func(model, tool, system string) string {
		return fmt.Sprintf(`{"model":%q,"tools":[{"type":"function","function":{"name":%q}}],"messages":[{"role":"system","content":%q},`, model, tool, system)
	}
	same := head("m", "run", "Be brief.")
	for name, c := range map[string]struct {
		head, upstream, client string
		want                   int
	}{
		"the same":              {same, "http://one", "key", 900},
		"other tools":           {head("m", "walk", "Be brief."), "http://one", "key", 0},
		"another system prompt": {head("m", "run", "Be brief. It is Monday."), "http://one", "key", 0},
		"another model":         {head("n", "run", "Be brief."), "http://one", "key", 0},
		"another upstream":      {same, "http://two", "key", 0},
		"another key":           {same, "http://one", "another", 0},
	} {
		l := &looking{}
		r := newRig(t, l)
		r.upstream, r.client = "http://one", "key"
		turn := r.begin(asks(same, 9), engine.WishNone)
		turn.Condense(t.Context())
		r.logged(turn)
		turn.Used(turn.Sent().Tokens, session.Usage{Input: 1000, Cached: 900})
		r.upstream, r.client = c.upstream, c.client
		next := r.begin(asks(c.head, 11), engine.WishNone)
		if next.Place().New {
			t.Fatalf("%s: another thread", name)
		}
		if next.Condense(t.Context()); l.cached != c.want {
			t.Errorf("%s: %d tokens are cached, want %d", name, l.cached, c.want)
		}
	}
}
