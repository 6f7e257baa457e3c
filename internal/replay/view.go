package replay

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// View is the body of a request that went upstream, laid over the one that its client sent.
type View struct {
	Summary string // text of the summary that stands in it, empty if none

	dialect       *chat.Dialect
	sentBody      []byte
	forwardedBody []byte
	sent          []session.Message
	forwarded     []session.Message
	from          []int // index in sent of each forwarded message, -1 for the summary
	kept          []bool
}

// LayOver maps the forwarded messages to those sent: in order, byte for byte or shown in part, with at most one summary
// among them. What cannot be mapped is an error.
func LayOver(sent, forwarded []byte) (*View, error) {
	d := chat.New(chat.Options{})
	was, err := d.Split(sent)
	if err != nil {
		return nil, fmt.Errorf("split what was sent: %w", err)
	}
	is, err := d.Split(forwarded)
	if err != nil {
		return nil, fmt.Errorf("split what was forwarded: %w", err)
	}
	v := &View{
		dialect: d, sentBody: sent, forwardedBody: forwarded, sent: was.Messages, forwarded: is.Messages,
		kept: make([]bool, len(was.Messages)),
	}
	return v, v.lay()
}

// Check tells which of the invariants that hold for every view are broken: what was not condensed is unchanged, units are
// whole, system messages, the newest user turn and the last unit are kept, and the summary stands between units.
func (v *View) Check() error {
	return errors.Join(v.untouched(), v.wholeUnits(), v.systemKept(), v.newestKept(), v.summaryPlaced())
}

// lay finds each forwarded message among those sent. Messages may be alike, so what stands before the summary is looked
// for from the beginning, and what stands after it from the end.
func (v *View) lay() error {
	v.from = make([]int, len(v.forwarded))
	low, high := 0, len(v.sent)
	at := 0
	for ; at < len(v.forwarded); at++ {
		i := slices.IndexFunc(v.sent[low:], func(s session.Message) bool { return v.same(s, v.forwarded[at]) })
		if i < 0 {
			break
		}
		v.from[at], low = low+i, low+i+1
		v.kept[v.from[at]] = true
	}
	if at == len(v.forwarded) {
		return nil
	}
	for i := len(v.forwarded) - 1; i > at; i-- {
		for high--; high >= low && !v.same(v.sent[high], v.forwarded[i]); high-- {
		}
		if high < low {
			return fmt.Errorf("forwarded a message that was not sent: %.200s", v.forwarded[i].Raw)
		}
		v.from[i], v.kept[high] = high, true
	}
	v.from[at] = -1
	return v.takeSummary(v.forwarded[at])
}

// same reports whether a forwarded message is the one sent: byte for byte, or a tool result shown in part.
func (v *View) same(sent, forwarded session.Message) bool {
	if bytes.Equal(sent.Raw, forwarded.Raw) {
		return true
	}
	if sent.Sealed && !forwarded.Sealed {
		bare, err := v.dialect.StripReasoning(sent.Raw)
		return err == nil && bytes.Equal(bare, forwarded.Raw)
	}
	if sent.Kind != session.Observation || sent.Result != forwarded.Result {
		return false
	}
	whole, err := v.dialect.Read(sent.Raw)
	if err != nil {
		return false
	}
	part, err := v.dialect.Read(forwarded.Raw)
	if err != nil {
		return false
	}
	head := 0
	for head < min(len(part.Text), len(whole.Text)) && part.Text[head] == whole.Text[head] {
		head++
	}
	tail := 0
	for tail < min(len(part.Text), len(whole.Text))-head && part.Text[len(part.Text)-1-tail] == whole.Text[len(whole.Text)-1-tail] {
		tail++
	}
	note := part.Text[head : len(part.Text)-tail]
	if len(forwarded.Raw) >= len(sent.Raw) && !strings.Contains(note, trimNote) {
		return false
	}
	return len(note) <= noteLength
}

// trimNote is what the note of a trim says. Such a result has fewer tokens than the one sent, but may have more bytes.
const trimNote = "characters left out here"

// noteLength bounds what stands in the place of what a tool result leaves out, in bytes.
const noteLength = 400

func (v *View) takeSummary(m session.Message) error {
	c, err := v.dialect.Read(m.Raw)
	if err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	if c.Role != "user" || record.Parse(c.Text).String() != c.Text {
		return fmt.Errorf("forwarded a message that was not sent and is no summary: %.200s", m.Raw)
	}
	v.Summary = c.Text
	return nil
}

// trimmed reports whether anything is shown in part.
func (v *View) trimmed() bool {
	for i, at := range v.from {
		if at >= 0 && !bytes.Equal(v.forwarded[i].Raw, v.sent[at].Raw) {
			return true
		}
	}
	return false
}

// untouched: what was not condensed is byte for byte what was sent.
func (v *View) untouched() error {
	if v.Summary == "" && len(v.forwarded) == len(v.sent) && !v.trimmed() && !bytes.Equal(v.sentBody, v.forwardedBody) {
		return errors.New("the body was changed")
	}
	return nil
}

func (v *View) wholeUnits() error {
	for _, u := range session.Units(v.sent) {
		for i := u.From + 1; i < u.To; i++ {
			if v.kept[i] != v.kept[u.From] {
				return fmt.Errorf("messages %d to %d were split", u.From, u.To-1)
			}
		}
	}
	return nil
}

func (v *View) systemKept() error {
	for i := range v.sent {
		if v.sent[i].Kind == session.System && !v.kept[i] {
			return fmt.Errorf("message %d is gone", i)
		}
	}
	return nil
}

func (v *View) newestKept() error {
	for i := len(v.sent) - 1; i >= 0; i-- {
		if v.sent[i].Kind == session.User {
			if !v.kept[i] {
				return fmt.Errorf("user message %d is gone", i)
			}
			break
		}
	}
	units := session.Units(v.sent)
	if last := units[len(units)-1]; !v.kept[last.From] {
		return fmt.Errorf("the last unit, at %d, is gone", last.From)
	}
	return nil
}

// summaryPlaced: what follows the summary begins a unit.
func (v *View) summaryPlaced() error {
	at := slices.Index(v.from, -1)
	if at < 0 || at+1 == len(v.forwarded) || v.forwarded[at+1].Kind != session.Observation {
		return nil
	}
	return fmt.Errorf("it stands before the tool result at %d", at+1)
}
