// Package condensetest checks what a condenser made of a history against the invariants that every condenser has to
// keep, and makes up histories to try them on.
package condensetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// View reports every invariant that a view of its history breaks, if no message in it may be changed.
func View(v *session.View) error { return errors.Join(unchanged(v), Shaped(v)) }

// Shaped reports every invariant that a view of its history breaks whose tool results may have another content.
func Shaped(v *session.View) error {
	kept := make([]bool, len(v.History.Messages))
	for _, item := range v.Items {
		if item.Index >= 0 {
			kept[item.Index] = true
		}
	}
	m := v.History.Messages
	return errors.Join(ordered(v), contents(v), systems(m, kept), newest(m, kept), units(m, kept), pairs(m, kept), bare(v), summaries(v, kept), copies(v))
}

// ordered: messages come in the client's order, each once.
func ordered(v *session.View) error {
	last := -1
	for i, item := range v.Items {
		if item.Index < 0 {
			continue
		}
		if item.Index <= last {
			return fmt.Errorf("item %d: message %d after message %d", i, item.Index, last)
		}
		last = item.Index
	}
	return nil
}

// unchanged: messages are the client's, byte for byte.
func unchanged(v *session.View) error {
	i := slices.IndexFunc(v.Items, func(item session.Item) bool { return changed(v, item) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("item %d: message %d was changed", i, v.Items[i].Index)
}

func changed(v *session.View, item session.Item) bool {
	return item.Index >= 0 && !bytes.Equal(item.Raw, v.History.Messages[item.Index].Raw)
}

// contents: of changed messages only the content is another one, and it is shorter. They are tool results; those that
// no model has answered yet are not changed but by a trim.
func contents(v *session.View) error {
	answered := 0
	for i := range v.History.Messages {
		if k := v.History.Messages[i].Kind; k == session.Agent || k == session.Action {
			answered = i
		}
	}
	for i, item := range v.Items {
		if !changed(v, item) {
			continue
		}
		was, now, err := contentOf(v.History.Messages[item.Index].Raw, item.Raw)
		switch {
		case err != nil:
			return fmt.Errorf("item %d: %w", i, err)
		case item.Kind != session.Observation || item.Index > answered && item.Trim == nil:
			return fmt.Errorf("item %d: message %d may not be changed", i, item.Index)
		case was != now || len(item.Raw) >= len(v.History.Messages[item.Index].Raw):
			return fmt.Errorf("item %d: message %d was changed in more than its content, or grew", i, item.Index)
		}
	}
	return nil
}

// contentOf is what two messages have apart from their text.
func contentOf(was, now []byte) (a, b string, err error) {
	before, errBefore := Codec{}.Read(was)
	after, errAfter := Codec{}.Read(now)
	before.Text, after.Text = "", ""
	return fmt.Sprint(before), fmt.Sprint(after), errors.Join(errBefore, errAfter)
}

// systems: system messages survive.
func systems(messages []session.Message, kept []bool) error {
	for i := range messages {
		if messages[i].Kind == session.System && !kept[i] {
			return fmt.Errorf("system message %d is missing", i)
		}
	}
	return nil
}

// newest: the newest user message and the last unit survive.
func newest(messages []session.Message, kept []bool) error {
	user, last := -1, -1
	for i := range messages {
		if messages[i].Kind == session.User {
			user = i
		}
		if messages[i].Kind != session.System {
			last = i
		}
	}
	if user >= 0 && !kept[user] {
		return fmt.Errorf("newest user message %d is missing", user)
	}
	if last >= 0 && !kept[last] {
		return fmt.Errorf("last message %d is missing", last)
	}
	return nil
}

// units: units are kept or left out whole.
func units(messages []session.Message, kept []bool) error {
	for _, u := range session.Units(messages) {
		first := -1
		for i := u.From; i < u.To; i++ {
			switch {
			case messages[i].Kind == session.System:
			case first < 0:
				first = i
			case kept[i] != kept[first]:
				return fmt.Errorf("unit %d-%d: message %d kept: %v, message %d kept: %v", u.From, u.To-1, first, kept[first], i, kept[i])
			}
		}
	}
	return nil
}

// pairs: a call and its first result are kept or left out together, however far apart the client put them.
func pairs(messages []session.Message, kept []bool) error {
	for i := range messages {
		for _, id := range messages[i].Calls {
			if r := result(messages, i, id); r >= 0 && kept[r] != kept[i] {
				return fmt.Errorf("call %s: message %d kept: %v, its result %d kept: %v", id, i, kept[i], r, kept[r])
			}
		}
	}
	return nil
}

// result is the message that answers call id of message i, -1 if none does.
func result(messages []session.Message, i int, id string) int {
	for r := i + 1; r < len(messages); r++ {
		if messages[r].Kind == session.Observation && messages[r].Result == id {
			return r
		}
		if slices.Contains(messages[r].Calls, id) {
			return -1
		}
	}
	return -1
}

// bare: once something is forgotten, the sealed reasoning of all that stays is left out up to one position, and of nothing
// behind it.
func bare(v *session.View) error {
	last := 0
	for _, c := range v.Applied {
		last = max(last, c.Stripped)
	}
	for i, item := range v.Items {
		if item.Index < 0 {
			continue
		}
		m := &v.History.Messages[item.Index]
		if want := m.Sealed && v.History.Pos(item.Index) <= last; item.Strip != want {
			return fmt.Errorf("item %d: its sealed reasoning is left out: %v, want %v", i, item.Strip, want)
		}
	}
	return nil
}

// summaries: there is at most one, and it stands in no unit and between no call and its result.
func summaries(v *session.View, kept []bool) error {
	at := -1
	for i, item := range v.Items {
		if item.Index >= 0 {
			continue
		}
		if at >= 0 {
			return fmt.Errorf("two summaries, items %d and %d", at, i)
		}
		at = i
	}
	if at <= 0 || at == len(v.Items)-1 {
		return nil
	}
	before, after := v.Items[at-1].Index, v.Items[at+1].Index
	m := v.History.Messages
	for _, u := range session.Units(m) {
		if before >= u.From && after < u.To {
			return fmt.Errorf("summary in unit %d-%d", u.From, u.To-1)
		}
	}
	for i := 0; i <= before; i++ {
		for _, id := range m[i].Calls {
			if r := result(m, i, id); r >= after && kept[i] {
				return fmt.Errorf("summary between call %s of message %d and its result %d", id, i, r)
			}
		}
	}
	return nil
}

// copies: what a result leaves out since an earlier one shows it, that one shows.
func copies(v *session.View) error {
	texts := map[int]string{}
	for i, item := range v.Items {
		if item.Index < 0 {
			continue
		}
		content, err := Codec{}.Read(item.Raw)
		if err != nil {
			continue // it is reported elsewhere
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

// Condensation reports what is wrong with a condensation made from a view.
func Condensation(before *session.View, c session.Condensation) error {
	return errors.Join(ranges(before, c), covers(before, c), trims(before, c), smaller(c))
}

// ranges: the ranges are ascending and not empty, and forget nothing twice.
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

// covers: the prefix ends with what is forgotten, and the summary stands in it.
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

// trims: they are of tool results not trimmed before, ascending, within the prefix, and leave something out.
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
			return fmt.Errorf("trim of position %d, which cannot be", t.Pos)
		case t.Pos <= last || t.Pos > c.Prefix:
			return fmt.Errorf("trim of position %d after %d, prefix %d", t.Pos, last, c.Prefix)
		case !t.Cut() && !t.Tidy && len(t.Copies) == 0:
			return fmt.Errorf("trim of position %d leaves nothing out", t.Pos)
		case t.Cut() && (t.Head < 0 || t.Tail < 0 || t.Head+t.Tail >= len(content.Text)):
			return fmt.Errorf("trim of %d+%d bytes, there are %d", t.Head, t.Tail, len(content.Text))
		}
		last = t.Pos
	}
	if len(c.Trims) > 0 && !before.History.Covers(c.Prefix, c.Hash) {
		return fmt.Errorf("prefix %d has another hash", c.Prefix)
	}
	return nil
}

// smaller: a condensation makes the view strictly smaller.
func smaller(c session.Condensation) error {
	if c.After.Tokens >= c.Before.Tokens || c.After.Events > c.Before.Events {
		return fmt.Errorf("not smaller: %+v, before %+v", c.After, c.Before)
	}
	return nil
}
