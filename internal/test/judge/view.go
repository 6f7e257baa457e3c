package judge

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// View compares the body of a forwarded request with the one that the client sent.
type View struct {
	Summary string // text of the summary in the forwarded request, empty if none

	dialect       *chat.Dialect
	sentBody      []byte
	forwardedBody []byte
	sent          []session.Message
	forwarded     []session.Message
	from          []int // index in sent of each forwarded message, -1 for the summary
	kept          []bool
}

// LayOver maps the forwarded messages to the sent ones. They must be in the same order, each unchanged or shown in part, with at most one
// summary among them. Otherwise it returns an error.
func LayOver(sent, forwarded []byte) (*View, error) {
	d := chat.New(chat.Options{})
	before, err := d.Split("", sent)
	if err != nil {
		return nil, fmt.Errorf("split the body sent: %w", err)
	}
	after, err := d.Split("", forwarded)
	if err != nil {
		return nil, fmt.Errorf("split the body forwarded: %w", err)
	}
	v := &View{
		dialect: d, sentBody: sent, forwardedBody: forwarded, sent: before.Messages, forwarded: after.Messages,
		kept: make([]bool, len(before.Messages)),
	}
	return v, v.mapMessages()
}

// Check returns the violations of the invariants of every view: without a condensation the body is unchanged, units are
// whole, system messages, the newest user turn and the last unit are kept, and the summary stands between units.
func (v *View) Check() error {
	return errors.Join(v.untouched(), v.wholeUnits(), v.systemKept(), v.newestKept(), v.summaryPlaced())
}

// mapMessages finds each forwarded message among the sent ones. Because messages may be identical, it matches the messages before the first gap
// from the beginning, and the others from the end. The message that was not sent is the summary.
func (v *View) mapMessages() error {
	v.from = make([]int, len(v.forwarded))
	front := 0
	for ; front < min(len(v.forwarded), len(v.sent)) && v.same(front, front); front++ {
		v.from[front], v.kept[front] = front, true
	}
	end := len(v.sent) // the sent messages before this are still to be matched
	for i := len(v.forwarded) - 1; i >= front; i-- {
		at := end - 1
		for at >= front && !v.same(at, i) {
			at--
		}
		switch {
		case at >= front:
			end, v.kept[at] = at, true
		case v.Summary != "":
			return fmt.Errorf("forwarded a message that was not sent: %.200s", v.forwarded[i].Raw)
		default:
			at = -1
			if err := v.takeSummary(v.forwarded[i]); err != nil {
				return err
			}
		}
		v.from[i] = at
	}
	return nil
}

// same reports whether a forwarded message is the one sent: byte for byte, or a tool result shown in part.
func (v *View) same(at, i int) bool {
	sent, forwarded := v.sent[at], v.forwarded[i]
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
	shorter := len(forwarded.Raw) < len(sent.Raw)
	for _, text := range [...]string{whole.Text, tidy.Text(whole.Text)} {
		if cut(text, part.Text, shorter) || v.complete(text, part.Text, i) {
			return true
		}
	}
	return false
}

// cut reports whether one text is the beginning and the end of another with a note between them.
func cut(whole, part string, shorter bool) bool {
	head := 0
	for head < min(len(part), len(whole)) && part[head] == whole[head] {
		head++
	}
	tail := 0
	for tail < min(len(part), len(whole))-head && part[len(part)-1-tail] == whole[len(whole)-1-tail] {
		tail++
	}
	note := part[head : len(part)-tail]
	if len(note) > noteLength || strings.Contains(note, "they stand unchanged in the result of") {
		return false
	}
	return shorter || strings.Contains(note, trimNote)
}

// copyNote matches the note in place of lines that an earlier result shows.
var copyNote = regexp.MustCompile(`^\[(\d+) lines left out here, from ".*" on: they stand unchanged in the result of (.+) above\]$`)

// complete reports whether a forwarded result lacks only lines that an earlier forwarded result has.
func (v *View) complete(whole, part string, i int) bool {
	rest := strings.Split(whole, "\n")
	for line := range strings.SplitSeq(part, "\n") {
		if len(rest) > 0 && rest[0] == line {
			rest = rest[1:]
			continue
		}
		note := copyNote.FindStringSubmatch(line)
		if note == nil {
			return false
		}
		n, err := strconv.Atoi(note[1])
		if err != nil || n > len(rest) || !v.shown(note[2], strings.Join(rest[:n], "\n"), i) {
			return false
		}
		rest = rest[n:]
	}
	return len(rest) == 0
}

// shown reports whether the result of a call contains some lines, in a message forwarded before the given one.
func (v *View) shown(call, lines string, before int) bool {
	return slices.ContainsFunc(v.forwarded[:before], func(m session.Message) bool {
		c, err := v.dialect.Read(m.Raw)
		return err == nil && m.Result == call && strings.Contains(c.Text, lines)
	})
}

// trimNote is part of the note in a trimmed result. A trimmed result has fewer tokens than the one sent, but may have more bytes.
const trimNote = "characters left out here"

// noteLength bounds the note that replaces a part of a tool result, in bytes.
const noteLength = 400

func (v *View) takeSummary(m session.Message) error {
	c, err := v.dialect.Read(m.Raw)
	if err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	if c.Role != "user" || record.Parse(c.Text).String() != c.Text {
		return fmt.Errorf("forwarded a message that was not sent and is not a summary: %.200s", m.Raw)
	}
	v.Summary = c.Text
	return nil
}

// trimmed reports whether any message is shown in part.
func (v *View) trimmed() bool {
	for i, at := range v.from {
		if at >= 0 && !bytes.Equal(v.forwarded[i].Raw, v.sent[at].Raw) {
			return true
		}
	}
	return false
}

// untouched checks that a body without condensations is forwarded byte for byte.
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
		if v.sent[i].Kind == session.User && !v.sent[i].Relayed {
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

// summaryPlaced checks that the message after the summary begins a unit.
func (v *View) summaryPlaced() error {
	at := slices.Index(v.from, -1)
	if at < 0 || at+1 == len(v.forwarded) || v.forwarded[at+1].Kind != session.Observation {
		return nil
	}
	return fmt.Errorf("it stands before the tool result at %d", at+1)
}
