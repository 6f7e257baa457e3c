package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// TestCachedTokensHoldForTheSamePrefixOnly: cached tokens that upstream reported apply only to requests with the same tools, system prompt, model, upstream
// and key.
func TestCachedTokensHoldForTheSamePrefixOnly(t *testing.T) {
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

// shaping is a condenser that shows another view in the step in which it condenses. Its job records how much of the view that it was decided on
// upstream is said to have in its cache.
type shaping struct {
	looking
	condense.Job
	in condense.Input
}

func (s *shaping) Condense(in condense.Input) condense.Decision {
	view := *in.View
	s.in, view.Items = in, slices.Clone(in.View.Items[1:])
	return condense.Decision{View: &view, Job: s}
}

func (s *shaping) Need() condense.Need { return condense.Need{Reason: session.ReasonEvents} }
func (s *shaping) Asks() bool          { return true }

func (s *shaping) Run(context.Context) (condense.Result, error) {
	s.cached = s.in.Thread.Sent.Cached(s.in.View)
	return condense.Result{}, errors.New("no record")
}

// TestViewThatIsNotSentIsNotCached: nothing of a view is in upstream's cache if another one is sent.
func TestViewThatIsNotSentIsNotCached(t *testing.T) {
	s := &shaping{looking: looking{cached: -1}}
	r := newRig(t, s)
	turn := r.begin(says(9), engine.WishNone)
	r.logged(turn)
	turn.Used(turn.Sent().Tokens, session.Usage{Input: 1000, Cached: 900})
	if r.begin(says(11), engine.WishNone).Condense(t.Context()); s.cached != 0 {
		t.Errorf("%d tokens are cached", s.cached)
	}
}
