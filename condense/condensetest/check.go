// Package condensetest checks views and condensations against the invariants that every condenser must keep, and generates
// conversations to try condensers on.
package condensetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// View reports the invariants that a view breaks. No message in it may be changed.
func View(v *session.View) error {
	for i, item := range v.Items {
		if changed(v, item) {
			return errors.Join(fmt.Errorf("item %d: message %d was changed", i, item.Index), Shaped(v))
		}
	}
	return Shaped(v)
}

// Unseen reports a view without the newest result, although no answer follows it. A condensation made before its history was rewound may
// hide it.
func Unseen(v *session.View) error {
	for i, m := range slices.Backward(v.History.Messages) {
		switch {
		case m.Kind.ByModel():
			return nil
		case m.Kind != session.Observation:
		case slices.ContainsFunc(v.Items, func(item session.Item) bool { return item.Index == i }):
			return nil
		default:
			return fmt.Errorf("result %d, which the model has not seen, is missing", i)
		}
	}
	return nil
}

// Shaped reports the invariants that a view breaks. Unlike View it allows tool results with shorter content.
func Shaped(v *session.View) error {
	kept := make([]bool, len(v.History.Messages))
	for _, item := range v.Items {
		if item.Index >= 0 {
			kept[item.Index] = true
		}
	}
	bonds := bondsOf(v.History.Messages)
	return errors.Join(messages(v), required(v.History.Messages, kept), together(bonds, kept), summaries(v, bonds, kept), copies(v))
}

// messages checks that messages come in the client's order, each once, that only tool results are changed, and that sealed
// reasoning is stripped where it is bound to another view.
func messages(v *session.View) error {
	answered := 0
	for i, m := range v.History.Messages {
		if m.Kind == session.Agent || m.Kind == session.Action {
			answered = i
		}
	}
	last := -1
	for i, item := range v.Items {
		if item.Index < 0 {
			continue
		}
		m := v.History.Messages[item.Index]
		strip := m.Sealed && !reflect.DeepEqual(before(v, item.Index, math.MaxInt), before(v, item.Index, v.History.Pos(item.Index)))
		switch {
		case item.Index <= last:
			return fmt.Errorf("item %d: message %d after message %d", i, item.Index, last)
		case item.Strip != strip:
			return fmt.Errorf("item %d: sealed reasoning stripped: %v, want %v", i, item.Strip, strip)
		case !changed(v, item):
		case item.Kind != session.Observation || item.Index > answered && item.Trim == nil: // a model has to see a result before it is masked
			return fmt.Errorf("item %d: message %d must not be changed", i, item.Index)
		case !shortened(m.Raw, item.Raw):
			return fmt.Errorf("item %d: message %d grew, or more than its content was changed", i, item.Index)
		}
		last = item.Index
	}
	return nil
}

// before returns the items in front of a message, under the condensations that were made before position p.
func before(v *session.View, index, p int) []session.Item {
	applied := slices.DeleteFunc(slices.Clone(v.Applied), func(c session.Condensation) bool { return c.Stripped >= p })
	items := session.Project(v.History, applied).Items
	return items[:max(slices.IndexFunc(items, func(i session.Item) bool { return i.Index == index }), 0)]
}

func changed(v *session.View, item session.Item) bool {
	return item.Index >= 0 && !bytes.Equal(item.Raw, v.History.Messages[item.Index].Raw)
}

// shortened reports whether now is the message was with a shorter content and no other change.
func shortened(was, now []byte) bool {
	content, err := Codec{}.Read(now)
	if err != nil {
		return false
	}
	rewritten, err := Codec{}.Rewrite(was, content.Text)
	return err == nil && bytes.Equal(rewritten, now) && len(now) < len(was)
}

// required checks that all system messages, the newest user message and the last message are kept.
func required(messages []session.Message, kept []bool) error {
	user, last := -1, -1
	for i, m := range messages {
		switch m.Kind {
		case session.System:
			if !kept[i] {
				return fmt.Errorf("system message %d is missing", i)
			}
			continue
		case session.User:
			user = i
		}
		last = i
	}
	if user >= 0 && !kept[user] {
		return fmt.Errorf("newest user message %d is missing", user)
	}
	if last >= 0 && !kept[last] {
		return fmt.Errorf("last message %d is missing", last)
	}
	return nil
}

// bond holds the indices of two messages that are kept or forgotten together.
type bond struct{ first, second int }

// bondsOf returns the bonds between the messages of each unit, and between each call and its first result, however far apart
// the client put them.
func bondsOf(messages []session.Message) (bonds []bond) {
	for _, u := range session.Units(messages) {
		first := -1
		for i := u.From; i < u.To; i++ {
			switch {
			case messages[i].Kind == session.System:
			case first < 0:
				first = i
			default:
				bonds = append(bonds, bond{first, i})
			}
		}
	}
	for i, m := range messages {
		for _, id := range m.Calls {
			if r := resultOf(messages, i, id); r >= 0 {
				bonds = append(bonds, bond{i, r})
			}
		}
	}
	return bonds
}

// resultOf returns the index of the message that answers call id of message i, or -1.
func resultOf(messages []session.Message, i int, id string) int {
	for r := i + 1; r < len(messages); r++ {
		if messages[r].Result == id && (id != "" || messages[r].Kind == session.Observation) {
			return r
		}
		if slices.Contains(messages[r].Calls, id) {
			return -1
		}
	}
	return -1
}

// together checks that bonded messages are kept or forgotten together.
func together(bonds []bond, kept []bool) error {
	for _, b := range bonds {
		if kept[b.first] != kept[b.second] {
			return fmt.Errorf("message %d kept: %v, message %d of the same unit or call kept: %v", b.first, kept[b.first], b.second, kept[b.second])
		}
	}
	return nil
}

// summaries checks that a view has at most one summary, and that it splits no unit and separates no call from its result.
func summaries(v *session.View, bonds []bond, kept []bool) error {
	isSummary := func(item session.Item) bool { return item.Index < 0 }
	at := slices.IndexFunc(v.Items, isSummary)
	if another := slices.IndexFunc(v.Items[at+1:], isSummary); at >= 0 && another >= 0 {
		return fmt.Errorf("two summaries, items %d and %d", at, at+1+another)
	}
	if at <= 0 || at == len(v.Items)-1 {
		return nil
	}
	before, after := v.Items[at-1].Index, v.Items[at+1].Index
	for _, u := range session.Units(v.History.Messages) {
		if before >= u.From && after < u.To {
			return fmt.Errorf("summary in unit %d-%d", u.From, u.To-1)
		}
	}
	for _, b := range bonds {
		if kept[b.first] && b.first <= before && b.second >= after {
			return fmt.Errorf("summary between message %d and message %d of the same unit or call", b.first, b.second)
		}
	}
	return nil
}

// copies checks that the text a result leaves out as a copy is really shown by the earlier result it points to.
func copies(v *session.View) error {
	texts := map[int]string{}
	for i, item := range v.Items {
		if item.Index < 0 {
			continue
		}
		content, err := Codec{}.Read(item.Raw)
		if err != nil {
			continue // messages reports it
		}
		pos := v.History.Pos(item.Index)
		texts[pos] = content.Text
		if item.Trim == nil || len(item.Trim.Copies) == 0 {
			continue
		}
		own, err := Codec{}.Read(v.History.Message(pos).Raw)
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		if item.Trim.Tidy {
			own.Text = tidy.Text(own.Text)
		}
		for _, c := range item.Trim.Copies {
			if c.Source >= pos || !strings.Contains(texts[c.Source], own.Text[c.From:c.To]) {
				return fmt.Errorf("item %d: message %d does not show bytes %d to %d, and neither does position %d", i, item.Index, c.From, c.To, c.Source)
			}
		}
	}
	return nil
}

// Condensation reports the invariants that a condensation breaks. before is the view it was made from.
func Condensation(before *session.View, c session.Condensation) error {
	var grew error
	if c.After.Tokens >= c.Before.Tokens || c.After.Events > c.Before.Events {
		grew = fmt.Errorf("not smaller: %+v, before %+v", c.After, c.Before)
	}
	return errors.Join(ranges(before, c), covers(before, c), trims(before, c), grew)
}

// ranges checks that the forgotten ranges are ascending and not empty, and that nothing is forgotten twice.
func ranges(before *session.View, c session.Condensation) error {
	if len(c.Forgotten) == 0 && len(c.Trims) == 0 {
		return errors.New("nothing forgotten")
	}
	gone := before.Forgotten()
	last := 0
	for _, r := range c.Forgotten {
		if r.From <= last || r.To <= r.From || r.To > before.History.Len()+1 {
			return fmt.Errorf("range %d-%d after %d of %d positions", r.From, r.To, last, before.History.Len())
		}
		for p := r.From; p < r.To; p++ {
			if gone[p] {
				return fmt.Errorf("position %d forgotten twice", p)
			}
		}
		last = r.To
	}
	return nil
}

// covers checks that the prefix includes everything forgotten, and that the summary comes before it.
func covers(before *session.View, c session.Condensation) error {
	if len(c.Forgotten) == 0 {
		return nil
	}
	last := c.Forgotten[len(c.Forgotten)-1].To - 1
	if c.Prefix < last || !before.History.Covers(c.Prefix, c.Hash) {
		return fmt.Errorf("prefix %d does not cover position %d, or has another hash", c.Prefix, last)
	}
	for _, a := range before.Applied {
		if c.Prefix < a.Prefix {
			return fmt.Errorf("prefix %d is shorter than %d of an earlier condensation", c.Prefix, a.Prefix)
		}
	}
	if c.Offset < 1 || c.Offset > c.Forgotten[0].From {
		return fmt.Errorf("offset %d, first forgotten %d", c.Offset, c.Forgotten[0].From)
	}
	return nil
}

// trims checks that trims are ascending and within the prefix, leave something out, and belong to tool results. A result may
// be cut only once.
func trims(before *session.View, c session.Condensation) error {
	shown := map[int]session.Item{}
	for _, item := range before.Items {
		if item.Index >= 0 {
			shown[before.History.Pos(item.Index)] = item
		}
	}
	last := 0
	for _, t := range c.Trims {
		item, ok := shown[t.Pos]
		content, err := Codec{}.Read(item.Raw)
		switch {
		case !ok || err != nil || item.Kind != session.Observation || item.Trim != nil && (item.Trim.Cut() || !t.Cut()):
			return fmt.Errorf("position %d cannot be trimmed", t.Pos)
		case t.Pos <= last || t.Pos > c.Prefix:
			return fmt.Errorf("trim of position %d after %d, prefix %d", t.Pos, last, c.Prefix)
		case !t.Cut() && !t.Tidy && len(t.Copies) == 0:
			return fmt.Errorf("trim of position %d leaves nothing out", t.Pos)
		case t.Cut() && (t.Head < 0 || t.Tail < 0 || t.Head+t.Tail >= len(content.Text)):
			return fmt.Errorf("trim keeps %d+%d of %d bytes", t.Head, t.Tail, len(content.Text))
		}
		last = t.Pos
	}
	if len(c.Trims) > 0 && !before.History.Covers(c.Prefix, c.Hash) {
		return fmt.Errorf("prefix %d has another hash", c.Prefix)
	}
	return nil
}
