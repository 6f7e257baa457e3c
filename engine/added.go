package engine

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/knowledge"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Knowledge configures the texts that are added for a tenant's models when a user's words trigger them. The zero value adds nothing.
type Knowledge struct {
	Topics func() *knowledge.Topics // nil: none
	Also   []KnowledgeSet           // for some requests
	Tokens int                      // maximum for each thread
}

// KnowledgeSet is more knowledge for requests with a header or a session key. If both are set, both have to fit.
type KnowledgeSet struct {
	Topics        func() *knowledge.Topics
	Header, Value string // a header, and its value; empty: any request
	Sessions      string // a valid pattern of session keys, as path.Match reads it; empty: any session
}

// fits reports whether the set is for a request with this header and session key.
func (s *KnowledgeSet) fits(header func(name string) string, key string) bool {
	if s.Header != "" && header(s.Header) != s.Value {
		return false
	}
	fits, _ := path.Match(s.Sessions, key)
	return s.Sessions == "" || fits
}

// knowledge returns the topics for the request.
func (t *Turn) knowledge() (all []*knowledge.Topics) {
	k := &t.in.Tenant.Knowledge
	add := func(topics func() *knowledge.Topics) {
		if found := topics(); found.Len() > 0 {
			all = append(all, found)
		}
	}
	if k.Topics != nil {
		add(k.Topics)
	}
	if len(k.Also) == 0 {
		return all
	}
	key, _ := t.in.Settings.identify(t.in.Header, t.in.Split.Fields)
	for i := range k.Also {
		if k.Also[i].fits(t.in.Header, key) {
			add(k.Also[i].Topics)
		}
	}
	return all
}

// addKnowledge returns the form with the topics that the user's new messages trigger. It changes only messages that the log does not have yet,
// and none before the last answer with sealed reasoning, which is bound to everything before it.
func (f *Form) addKnowledge(ctx context.Context, report *Report) *Form {
	if f.turn.purpose != session.PurposeMain || f.place.Again || f.place.Match == session.MatchReplay {
		return f
	}
	topics := f.turn.knowledge()
	if len(topics) == 0 {
		return f
	}
	for p := max(f.place.Logged, f.turn.history.LastSealed()) + 1; p <= f.turn.history.Len(); p++ {
		m := f.turn.history.Message(p)
		if m.Kind != session.User || m.Relayed {
			continue
		}
		typed := strings.ToLower(record.TypedText(f.turn.text(m)))
		if strings.TrimSpace(typed) == "" {
			continue
		}
		var added bool
		if f, added = f.addText(ctx, p, f.triggered(topics, typed), report); !added {
			break
		}
	}
	return f
}

// triggered returns the topics that a text triggers and the thread does not have yet, as far as they fit the thread's limit.
func (f *Form) triggered(topics []*knowledge.Topics, lower string) session.Condensation {
	c, left := session.Condensation{Reason: session.ReasonKnowledge}, f.turn.in.Tenant.Knowledge.Tokens
	for i := range f.shown.applied {
		if earlier := &f.shown.applied[i]; earlier.Reason == session.ReasonKnowledge {
			left -= earlier.SummaryTokens
		}
	}
	var found []knowledge.Triggered
	for _, some := range topics {
		found = append(found, some.In(lower)...)
	}
	for _, topic := range found {
		if f.hasTopic(topic.Name) || slices.Contains(c.Topics, topic.Name) {
			continue
		}
		text := topic.Render()
		n := f.turn.counter.Text(text)
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
func (f *Form) hasTopic(topic string) bool {
	return slices.ContainsFunc(f.shown.applied, func(c session.Condensation) bool { return slices.Contains(c.Topics, topic) })
}

// addText returns the form with the text of c, if it has any, added to the message at position p. It is logged first, so that every later
// request of the thread has it in the same place. If logging fails, nothing is added and addText returns false.
func (f *Form) addText(ctx context.Context, p int, c session.Condensation, report *Report) (*Form, bool) {
	if len(c.Topics) == 0 {
		return f, true
	}
	c.Prefix, c.Hash, c.Added, c.Condenser = p, f.turn.history.Chain[p], p, string(c.Reason)
	f, err := f.logNew(ctx)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, writeFactor*f.turn.engine.o.Limits.Store)
		defer cancel()
		place := f.at()
		c, err = f.turn.registry.Condense(limited, place, &f.shown.view, c)
		f = f.moved(place)
	}
	if err != nil {
		f.attempted(report, Attempt{Reason: c.Reason, Err: err})
		return f, false
	}
	return f.showing(f.project(append(slices.Clip(f.shown.applied), c))), true
}
