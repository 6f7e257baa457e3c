// Package judge plays recorded agent runs through a proxy, step by step as their agents would, against a strict fake upstream, and checks
// the forwarded requests from outside. It serves tests and measurements, and is not part of the program.
package judge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Expectations are the guarantees of the proxy's configuration.
type Expectations struct {
	MaxSize     int      // events; 0: not checked
	MaxTokens   int      // tokens, in the proxy's own count; 0: not checked
	PerRequest  int      // the maximum number of condensations; 0: 2
	Summarisers []string // models of the proxy's own calls
	MayFail     bool     // calls of the summariser may fail
	Plain       bool     // messages may be hidden without a summary
	Moving      bool     // forwarded messages may change at any step
	HiddenTools bool     // requests get tools that the client does not see
	Tolerant    bool     // prefixes may change without a condensation, since a proxy was killed and lost its last writes
}

// observed is one exchange, as seen by the agent and by the upstream.
type observed struct {
	Step
	header    http.Header
	sent      []byte // the request's body, and its messages
	messages  []json.RawMessage
	main      fakeupstream.Request   // the request as forwarded
	own       []fakeupstream.Request // calls of the summariser
	got, want json.RawMessage        // the answer
	again     bool                   // the request repeats the last one
}

// judge checks every exchange against the invariants that are visible from outside.
type judge struct {
	expect     Expectations
	last       *observed // the previous exchange
	summary    string    // the last forwarded summary
	maxTokens  int       // the largest request
	violations []error
}

// maxViolations bounds the report, since a defect often shows at every later step.
const maxViolations = 20

func (j *judge) fail(o observed, invariant string, err error) {
	if err != nil && len(j.violations) < maxViolations {
		j.violations = append(j.violations, fmt.Errorf("step %d: %s: %w", o.Number, invariant, err))
	}
}

func (j *judge) step(o observed) {
	if o.main.Refused != nil {
		j.fail(o, "upstream refused", o.main.Refused)
	}
	j.fail(o, "answer", sameAnswer(o.got, o.want))
	v, err := LayOver(o.sent, o.main.Body)
	if err != nil {
		j.fail(o, "view", err)
		return
	}
	if !j.expect.HiddenTools {
		j.fail(o, "untouched below thresholds", v.untouched())
	}
	j.fail(o, "units are whole", v.wholeUnits())
	j.fail(o, "system messages survive", v.systemKept())
	j.fail(o, "newest user turn and trailing unit survive", v.newestKept())
	j.fail(o, "summary stands between units", v.summaryPlaced())
	j.fail(o, "stable prefix", j.stable(o))
	if o.again {
		return
	}
	j.fail(o, "one thread", j.oneThread(o))
	j.fail(o, "bounded", j.bounded(o))
	j.fail(o, "thresholds", j.thresholds(o))
	j.fail(o, "smaller", smaller(o))
	j.fail(o, "summariser", j.summariser(o, v))
	j.summary, j.last = v.Summary, &o
}

func (j *judge) bounded(o observed) error {
	others := slices.DeleteFunc(slices.Clone(o.condensed), isArrival) // each condenser that trims new messages may do so once
	if n := len(others); n > cmp.Or(j.expect.PerRequest, 2) {
		return fmt.Errorf("%d condensations", n)
	}
	return nil
}

// isArrival reports whether a condensation, as described in the response's header, trimmed new messages.
func isArrival(condensed string) bool {
	return strings.HasPrefix(condensed, string(session.ReasonArrival)+";")
}

// thresholds checks that a condensation happens if and only if one is due.
func (j *judge) thresholds(o observed) error {
	before := len(o.messages)
	if j.last != nil && j.follows(o) {
		before = j.last.Forwarded + len(o.messages) - j.last.Events
	}
	if j.expect.MaxSize > 0 {
		later := laterSystem(o.messages)
		before, forwarded := before-later, o.Forwarded-later
		if o.Condensed != "" && before <= j.expect.MaxSize && strings.HasPrefix(o.Condensed, "events") {
			return fmt.Errorf("condensed at %d events, not above %d", before, j.expect.MaxSize)
		}
		if forwarded > j.expect.MaxSize {
			return fmt.Errorf("forwarded %d events, above %d", forwarded, j.expect.MaxSize)
		}
	}
	if o.Tokens == "" {
		return nil // it was not recognised, because the store was unavailable
	}
	sent, _, _ := strings.Cut(o.Tokens, ";")
	tokens, err := strconv.Atoi(sent)
	if err != nil {
		return fmt.Errorf("tokens header: %w", err)
	}
	j.maxTokens = max(j.maxTokens, tokens)
	if strings.HasPrefix(o.Condensed, "tokens") && j.expect.MaxTokens > 0 && tokens <= j.expect.MaxTokens {
		return fmt.Errorf("condensed at %d tokens, not above %d", tokens, j.expect.MaxTokens)
	}
	return nil
}

// finish judges a whole run: a run that far exceeded the token limit must have been condensed.
func (j *judge) finish(r Report) {
	if j.expect.MaxTokens > 0 && j.maxTokens > 2*j.expect.MaxTokens && r.Condensations == 0 {
		j.violations = append(j.violations, fmt.Errorf("%d tokens, and nothing was condensed above %d", j.maxTokens, j.expect.MaxTokens))
	}
}

// follows reports whether an exchange continues the previous one.
func (j *judge) follows(o observed) bool {
	return o.Events >= j.last.Events && bytes.Equal(o.messages[j.last.Events-1], j.last.messages[j.last.Events-1])
}

// smaller checks that each condensation removed tokens, by the proxy's own count.
func smaller(o observed) error {
	for _, c := range o.condensed {
		parts := strings.Split(c, "; ")
		if len(parts) != 4 || strings.HasPrefix(parts[2], "-") || parts[2] == "0" {
			return fmt.Errorf("%q", c)
		}
	}
	return nil
}

// oneThread checks that all requests of a run that only grows are in one thread.
func (j *judge) oneThread(o observed) error {
	if j.last != nil && j.follows(o) && !j.expect.Tolerant && o.thread != j.last.thread {
		return fmt.Errorf("thread %s after %s", o.thread, j.last.thread)
	}
	return nil
}

// stable checks that the forwarded prefix stays byte for byte the same between condensations, and that a repeated request is
// forwarded identically, without calls of the summariser.
func (j *judge) stable(o observed) error {
	if j.last == nil || !j.follows(o) {
		return nil
	}
	if o.again {
		if len(o.own) > 0 {
			return errors.New("a repeated request called the summariser")
		}
		if !bytes.Equal(o.main.Body, j.last.main.Body) {
			return errors.New("a repeated request was forwarded differently")
		}
		return nil
	}
	if o.Condensed != "" || j.expect.Tolerant || j.expect.Moving {
		return nil
	}
	if len(o.forwarded) < len(j.last.forwarded) {
		return fmt.Errorf("%d messages forwarded after %d, without a condensation", len(o.forwarded), len(j.last.forwarded))
	}
	for i, m := range j.last.forwarded {
		if !bytes.Equal(m, o.forwarded[i]) {
			return fmt.Errorf("forwarded message %d changed without a condensation", i)
		}
	}
	return nil
}

// missingNote is the line of a record that counts messages without a summary. The proxy removes it when it summarises them.
var missingNote = regexp.MustCompile(`(?m)^NOT_SUMMARISED: .*$`)

// summariser checks that the proxy's own calls use its own model, contain the previous summary in full, and have the client's tools only if
// they reuse the client's request.
func (j *judge) summariser(o observed, v *View) error {
	mayFail := j.expect.Tolerant || j.expect.MayFail && o.header.Get("X-Dewpoint-Condense-Failed") != ""
	if len(o.own) > 0 && o.Condensed == "" && !mayFail {
		return errors.New("it was called, but nothing was condensed")
	}
	previous := squeezed(missingNote.ReplaceAllString(record.Parse(j.summary).Record, ""))
	for _, r := range o.own {
		ownTools := bytes.Contains(r.Tools, []byte(`"create_state_summary"`)) || bytes.Contains(r.Tools, []byte(`"event_ranking"`))
		text := r.Text()
		reuse := strings.Contains(text, fakeupstream.RecordQuestion) && r.Model == o.main.Model
		switch {
		case !reuse && !slices.Contains(j.expect.Summarisers, r.Model):
			return fmt.Errorf("model %q", r.Model)
		case len(r.Tools) > 0 && !ownTools && !reuse:
			return errors.New("it was sent the client's tools")
		case j.summary != "" && !strings.Contains(squeezed(text), previous):
			return errors.New("it was not sent the whole previous summary")
		}
	}
	if o.Condensed != "" && v.Summary == "" && !v.trimmed() && !j.expect.Plain {
		return errors.New("condensed without a summary")
	}
	return nil
}

// squeezed removes white space and quoting, since the prompt may indent and quote the summary.
func squeezed(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n>|\\", r) }), "")
}
