package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/knowledge"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Knowledge is what a tenant's models are told when a person's words call for it. The zero value is nothing.
type Knowledge struct {
	Topics func() []knowledge.Topic // nil: there are none
	Tokens int                      // that a thread may be told at most
}

// inform adds to what a person has typed in this request what it calls for. It is logged before it is forwarded, so that it stands there
// for good; where that fails, it is left out.
func (t *Turn) inform(ctx context.Context) (report Report) {
	if t.in.Tenant.Knowledge.Topics == nil || t.purpose != session.PurposeMain || t.place.Again || t.place.Match == session.MatchReplay {
		return report
	}
	topics := t.in.Tenant.Knowledge.Topics()
	for p := t.unanswered(); p <= t.history.Len() && len(topics) > 0; p++ {
		m := t.history.Message(p)
		if m.Kind != session.User {
			continue
		}
		if lower := strings.ToLower(record.TypedText(t.text(m))); strings.TrimSpace(lower) != "" {
			if err := t.tell(ctx, p, topics, lower); err != nil {
				t.attempted(&report, Attempt{Reason: session.ReasonKnowledge, Err: err})
				return report
			}
		}
	}
	return report
}

// unanswered is the first position of those that the log does not have, behind the last answer with reasoning that is bound to what stood
// before it.
func (t *Turn) unanswered() int {
	for p := t.history.Len(); p > t.place.Logged; p-- {
		if t.history.Message(p).Sealed {
			return p + 1
		}
	}
	return t.place.Logged + 1
}

// tell adds the topics that a text calls for to the message at a position, but none that the thread was told.
func (t *Turn) tell(ctx context.Context, p int, topics []knowledge.Topic, lower string) error {
	c, left := session.Condensation{
		Prefix: p, Hash: t.history.Chain[p], Addition: session.Addition{Added: p}, Reason: session.ReasonKnowledge, Condenser: string(session.ReasonKnowledge),
	}, t.in.Tenant.Knowledge.Tokens
	told := map[string]bool{}
	for _, earlier := range t.shown.applied {
		if earlier.Reason == session.ReasonKnowledge {
			left -= earlier.SummaryTokens
		}
		for _, name := range earlier.Topics {
			told[name] = true
		}
	}
	for i := range topics {
		topic := &topics[i]
		if told[topic.Name] || !topic.Called(lower) {
			continue
		}
		text := topic.Told(lower)
		if n := t.counter.Text(text); n <= left {
			c.Summary, c.Topics, c.SummaryTokens, left = c.Summary+text, append(c.Topics, topic.Name), c.SummaryTokens+n, left-n
		}
	}
	if len(c.Topics) == 0 {
		return nil
	}
	return t.addText(ctx, c)
}

// addText logs a text that is added to a message, and shows it.
func (t *Turn) addText(ctx context.Context, c session.Condensation) error {
	if err := t.logNew(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeFactor*t.engine.o.Limits.Store)
	defer cancel()
	c, err := t.registry.Condense(ctx, &t.place, &t.shown.view, c)
	if err == nil {
		t.show(t.project(append(slices.Clip(t.shown.applied), c)))
	}
	return err
}
