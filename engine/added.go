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

// Knowledge is what a tenant's models are told when a person's words call for it. The zero value is nothing.
type Knowledge struct {
	Topics func() []knowledge.Topic // nil: there are none
	Tokens int                      // that a thread may be told at most
}

// inform adds to what a person has typed in this request what it calls for. Only messages behind the last answer with reasoning that is
// bound to what stood before it are added to, of those that the log does not have.
func (t *Turn) inform(ctx context.Context) (report Report) {
	if t.in.Tenant.Knowledge.Topics == nil || t.purpose != session.PurposeMain || t.place.Again || t.place.Match == session.MatchReplay {
		return report
	}
	topics, first := t.in.Tenant.Knowledge.Topics(), t.place.Logged+1
	for p := first; p <= t.history.Len(); p++ {
		if t.history.Message(p).Sealed {
			first = p + 1
		}
	}
	for p := first; p <= t.history.Len(); p++ {
		m := t.history.Message(p)
		if len(topics) == 0 || m.Kind != session.User {
			continue
		}
		lower := strings.ToLower(record.TypedText(t.text(m)))
		if strings.TrimSpace(lower) != "" && !t.tell(ctx, p, t.called(topics, lower), &report) {
			break
		}
	}
	return report
}

// called is what a text calls for that the thread was not told, as far as there is room.
func (t *Turn) called(topics []knowledge.Topic, lower string) session.Condensation {
	c, left := session.Condensation{Reason: session.ReasonKnowledge}, t.in.Tenant.Knowledge.Tokens
	for i := range t.shown.applied {
		if earlier := &t.shown.applied[i]; earlier.Reason == session.ReasonKnowledge {
			left -= earlier.SummaryTokens
		}
	}
	for i := range topics {
		topic := &topics[i]
		if t.told(topic.Name) || !topic.Called(lower) {
			continue
		}
		text := topic.Told(lower)
		if n := t.counter.Text(text); n <= left {
			c.Summary, c.Topics, c.SummaryTokens, left = c.Summary+text, append(c.Topics, topic.Name), c.SummaryTokens+n, left-n
		}
	}
	return c
}

// told reports whether the thread was told of a topic.
func (t *Turn) told(topic string) bool {
	return slices.ContainsFunc(t.shown.applied, func(c session.Condensation) bool { return slices.Contains(c.Topics, topic) })
}

// tell adds a text to the message at a position, if there is any. It is logged before it is forwarded, so that it stands there for good;
// where that fails, it is left out.
func (t *Turn) tell(ctx context.Context, p int, c session.Condensation, report *Report) bool {
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

// A call repeats another if it is of the same tool, with the same arguments, and has the same result but for digits, so that neither the
// time that something took nor a counter makes it another one. A user's message ends all repetition.

// calls is what a thread's newest calls were, up to a position.
type calls struct {
	at     int
	head   session.Hash // chain hash up to there
	recent []repeated   // the newest last; at most limit.MaxRepeats
}

// repeated is a call that has its result.
type repeated struct {
	what  [sha256.Size]byte // stands for both
	name  string            // of the tool
	times int               // that it was made so far
	known int               // of those, that the log had
}

// readCalls reads the calls that are new since the thread's last request here, or the newest of those before if none is known. Of those
// that the log does not have it gives the one that was made most often. The turn's place may be another one by then.
func (t *Turn) readCalls(place *session.Resolution) (worst repeated) {
	h, known := t.history, t.engine.memory.calls
	c, _ := known.Get(place.Thread.ID)
	if c.at == 0 || !h.Covers(c.at, c.head) {
		c = calls{at: max(h.Len()-2*limit.MaxRepeats, 0)}
	}
	c.recent = slices.Clone(c.recent)
	asked, fresh := map[string]session.Call{}, map[[sha256.Size]byte]int{}
	for p := c.at + 1; p <= h.Len(); p++ {
		m := h.Message(p)
		content, err := t.in.Dialect.Read(m.Raw)
		if err != nil {
			continue
		}
		switch m.Kind {
		case session.User:
			if strings.TrimSpace(record.TypedText(content.Text)) != "" {
				c.recent = nil
			}
		case session.Action:
			for _, call := range content.Calls {
				asked[call.ID] = call
			}
		case session.Observation:
			if call, is := asked[m.Result]; is && len(content.Images)+len(content.Files) == 0 {
				made := c.add(call, content.Text)
				if p <= place.Logged {
					continue
				}
				fresh[made.what]++
				if made.times > worst.times {
					worst = made
				}
			}
		}
	}
	c.at, c.head = h.Len(), h.Head()
	known.Add(place.Thread.ID, c)
	worst.known = worst.times - fresh[worst.what]
	return worst
}

// add takes in a call with its result.
func (c *calls) add(call session.Call, result string) repeated {
	result = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, result)
	made := repeated{name: call.Name, times: 1, what: sha256.Sum256(fmt.Appendf(nil, "%q %q %q", call.Name, canonical(call.Arguments), result))}
	for _, earlier := range c.recent {
		if earlier.what == made.what {
			made.times = earlier.times + 1
		}
	}
	c.recent = append(c.recent, made)
	c.recent = c.recent[max(len(c.recent)-limit.MaxRepeats, 0):]
	return made
}

// longArguments is how long arguments may be, in bytes, to be compared as JSON and not as they are spelt.
const longArguments = 64 << 10

// canonical is a call's arguments in one spelling.
func canonical(arguments string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	if len(arguments) > longArguments || d.Decode(&v) != nil {
		return arguments
	}
	text, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return string(text)
}

// passed reports whether the new calls among them reached so many, or passed it, or that doubled any number of times.
func (r repeated) passed(after int) bool {
	for ; after <= r.times; after *= 2 {
		if after > r.known {
			return true
		}
	}
	return false
}

// tellRepeats tells the model that it repeats itself, when it has done so as often as is configured, and each time that this has doubled.
func (t *Turn) tellRepeats(ctx context.Context) (report Report) {
	l := t.in.Tenant.Repeats
	if l.Then != limit.Tell || t.repeats == nil || t.place.Match == session.MatchReplay {
		return report
	}
	r := t.repeats()
	if !r.passed(l.After) {
		return report
	}
	name := fmt.Sprintf("%x %d", r.what[:6], r.times)
	if t.told(name) {
		return report
	}
	text := fmt.Sprintf("[Note: the same call of %s has been made %d times and its result is still the same, numbers apart. If you are waiting for "+
		"something, go on. If not, the same call once more will not help: try another way, or ask the user.]", head(record.Printable(r.name)), r.times)
	t.tell(ctx, t.history.Len(), session.Condensation{
		Addition: session.Addition{Topics: []string{name}}, Reason: session.ReasonRepeated, Summary: text, SummaryTokens: t.counter.Text(text),
	}, &report)
	return report
}
