package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/knowledge"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
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

// A call repeats another if tool, arguments and result are the same. Digits in results are ignored, so that timings and counters make no
// difference. A user message ends all repetition.

// recentCalls are a thread's newest calls up to a position.
type recentCalls struct {
	at    int
	head  session.Hash   // chain hash at that position
	calls []repeatedCall // oldest first; at most limit.MaxRepeats
}

// repeatedCall is a call with its result.
type repeatedCall struct {
	id    [sha256.Size]byte // digest of tool, arguments and result
	name  string            // of the tool
	times int               // how often it was made so far
	known int               // of those, how many are in the log
}

// readCalls reads the calls made since the thread's last request to this process, or the newest ones if that is not known. It returns
// the most repeated of those that the log does not have. It must not use t.place, which may change meanwhile.
func (t *Turn) readCalls(place *session.Resolution) (worst repeatedCall) {
	h, known := t.history, t.engine.memory.calls
	recent, _ := known.Get(place.Thread.ID)
	if recent.at == 0 || !h.Covers(recent.at, recent.head) {
		recent = recentCalls{at: max(h.Len()-2*limit.MaxRepeats, 0)}
	}
	recent.calls = slices.Clone(recent.calls)
	open, fresh := map[string]session.Call{}, map[[sha256.Size]byte]int{}
	for p := recent.at + 1; p <= h.Len(); p++ {
		m := h.Message(p)
		content, err := t.in.Dialect.Read(m.Raw)
		if err != nil {
			continue
		}
		switch m.Kind {
		case session.User:
			if strings.TrimSpace(record.TypedText(content.Text)) != "" {
				recent.calls = nil
			}
		case session.Action:
			for _, call := range content.Calls {
				open[call.ID] = call
			}
		case session.Observation:
			call, ok := open[m.Result]
			if !ok || call.ByCode || len(content.Images)+len(content.Files) > 0 { // the API accepts no text after a result that code reads
				continue
			}
			made := recent.add(call, content.Text)
			if p <= place.Logged {
				continue
			}
			fresh[made.id]++
			if made.times > worst.times {
				worst = made
			}
		}
	}
	recent.at, recent.head = h.Len(), h.Head()
	known.Add(place.Thread.ID, recent)
	worst.known = worst.times - fresh[worst.id]
	return worst
}

// add adds a call with its result.
func (c *recentCalls) add(call session.Call, result string) repeatedCall {
	result = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, result)
	made := repeatedCall{name: call.Name, times: 1}
	made.id = sha256.Sum256(fmt.Appendf(nil, "%q %q %q", call.Name, canonicalJSON(call.Arguments), result))
	for _, earlier := range c.calls {
		if earlier.id == made.id {
			made.times = earlier.times + 1
		}
	}
	c.calls = append(c.calls, made)
	c.calls = c.calls[max(len(c.calls)-limit.MaxRepeats, 0):]
	return made
}

// canonicalJSON returns a call's arguments in a canonical form. Long ones are compared as text.
func canonicalJSON(arguments string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	if len(arguments) > maxArguments || d.Decode(&v) != nil {
		return arguments
	}
	text, _ := json.Marshal(v) // what was decoded can be encoded
	return string(text)
}

// reached reports whether the new calls have brought the count to after, or to any of its doublings.
func (r repeatedCall) reached(after int) bool {
	for ; after <= r.times; after *= 2 {
		if after > r.known {
			return true
		}
	}
	return false
}

// noteRepeats adds a note for a model that repeats a call, when the configured count is reached and each time it has doubled.
func (t *Turn) noteRepeats(ctx context.Context) (report Report) {
	l := t.in.Tenant.Repeats
	if l.Then != limit.Tell || t.repeats == nil || t.place.Match == session.MatchReplay {
		return report
	}
	r := t.repeats()
	if !r.reached(l.After) {
		return report
	}
	topic := fmt.Sprintf("%x %d", r.id[:6], r.times)
	if t.hasTopic(topic) {
		return report
	}
	text := fmt.Sprintf("[Note: the same call of %s has been made %d times and its result is still the same, numbers apart. If you are waiting for "+
		"something, go on. If not, the same call once more will not help: try another way, or ask the user.]", clip(record.Printable(r.name)), r.times)
	t.addText(ctx, t.history.Len(), session.Condensation{
		Addition: session.Addition{Topics: []string{topic}}, Reason: session.ReasonRepeated, Summary: text, SummaryTokens: t.counter.Text(text),
	}, &report)
	return report
}
