package engine

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Supposed is what would have been done for a request that is left alone. But for Due it is told of tenants that only observe, and as if the
// thread had been condensed all along. Tokens are before calibration.
type Supposed struct {
	Due    session.Reason // for which it would be condensed, where nothing is: its tenant observes, or its client wants none of it
	Spared int            // tokens that would not have been forwarded
	Made   bool           // a condensation would have been made for this request
}

// filler is a text of about that many tokens.
func (t *Turn) filler(tokens int) string {
	text := strings.Repeat(" a", tokens)
	return strings.Repeat(" a", tokens*tokens/max(t.counter.Text(text), 1))
}

// suppose works out what would be forwarded. Summaries are taken to be as long as their room. Nothing is asked, logged or shown.
func (t *Turn) suppose() (s Supposed) {
	s.Due = t.due()
	shown, id := t.shown, t.place.Thread.ID
	defer func() { t.show(shown) }()
	earlier, _ := t.engine.memory.supposed.Get(id)
	applied := session.Applicable(t.history, slices.Concat(shown.applied, earlier))
	t.show(t.project(applied))
	for range t.engine.o.Condenses {
		_, d := t.decide()
		if d.Job == nil {
			break
		}
		c, summary := d.Job.Plan()
		c.ID = session.CondensationID{Thread: id, Seq: 1<<62 + uint64(len(applied))} // unlike that of any logged one
		if n := len(applied); n > 0 {
			c.Base = applied[n-1].ID
		}
		if summary > 0 {
			c.Summary = t.filler(summary)
		}
		applied, s.Made = append(applied, c), true
		t.show(t.project(applied))
	}
	if s.Made {
		t.engine.memory.supposed.Add(id, applied[min(len(shown.applied), len(applied)):])
	}
	s.Spared = max(t.Before().Tokens-t.size().Tokens, 0)
	return s
}
