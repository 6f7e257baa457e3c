package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/knowledge"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Knowledge configures the texts that are added for a tenant's models when a user's words trigger them. The zero value adds nothing.
type Knowledge struct {
	Topics func() []knowledge.Topic // nil: none
	Tokens int                      // maximum for each thread
}

// addKnowledge adds the topics that the user's new messages trigger. It changes only messages that the log does not have yet, and none
// before the last answer with sealed reasoning, which is bound to everything before it.
func (t *Turn) addKnowledge(ctx context.Context) (report Report) {
	if t.in.Tenant.Knowledge.Topics == nil || t.purpose != session.PurposeMain || t.place.Again || t.place.Match == session.MatchReplay {
		return report
	}
	topics := t.in.Tenant.Knowledge.Topics()
	if len(topics) == 0 {
		return report
	}
	for p := max(t.place.Logged, t.history.LastSealed()) + 1; p <= t.history.Len(); p++ {
		m := t.history.Message(p)
		if m.Kind != session.User {
			continue
		}
		typed := strings.ToLower(record.TypedText(t.text(m)))
		if strings.TrimSpace(typed) != "" && !t.addText(ctx, p, t.triggered(topics, typed), &report) {
			break
		}
	}
	return report
}

// triggered returns the topics that a text triggers and the thread does not have yet, as far as they fit the thread's limit.
func (t *Turn) triggered(topics []knowledge.Topic, lower string) session.Condensation {
	c, left := session.Condensation{Reason: session.ReasonKnowledge}, t.in.Tenant.Knowledge.Tokens
	for i := range t.shown.applied {
		if earlier := &t.shown.applied[i]; earlier.Reason == session.ReasonKnowledge {
			left -= earlier.SummaryTokens
		}
	}
	for i := range topics {
		topic := &topics[i]
		if t.hasTopic(topic.Name) || !topic.TriggeredBy(lower) {
			continue
		}
		text := topic.Render(lower)
		n := t.counter.Text(text)
		if n > left {
			continue
		}
		left -= n
		c.Summary += text
		c.SummaryTokens += n
		c.Topics = append(c.Topics, topic.Name)
	}
	return c
}

// hasTopic reports whether a topic was added to the thread before.
func (t *Turn) hasTopic(topic string) bool {
	return slices.ContainsFunc(t.shown.applied, func(c session.Condensation) bool { return slices.Contains(c.Topics, topic) })
}

// addText adds the text of c, if it has any, to the message at position p. It is logged first, so that every later request of the thread
// has it in the same place. If logging fails, nothing is added and addText returns false.
func (t *Turn) addText(ctx context.Context, p int, c session.Condensation, report *Report) bool {
	if len(c.Topics) == 0 {
		return true
	}
	c.Prefix, c.Hash, c.Added, c.Condenser = p, t.history.Chain[p], p, string(c.Reason)
	err := t.logNew(ctx)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, writeFactor*t.engine.o.Limits.Store)
		defer cancel()
		c, err = t.registry.Condense(limited, &t.place, &t.shown.view, c)
	}
	if err != nil {
		t.attempted(report, Attempt{Reason: c.Reason, Err: err})
		return false
	}
	t.show(t.project(append(slices.Clip(t.shown.applied), c)))
	return true
}
