package condense

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// ToolOutputTrim shows the beginning and the end of an oversized tool result, with a note in place of the middle. It decides
// on results when they arrive, before any model has seen them, and never changes a decision, so the prompt cache loses
// nothing. Results with images or files are not changed.
type ToolOutputTrim struct {
	MaxEventLength int // maximum characters of a result; 0: DefaultEventLength
}

func (ToolOutputTrim) Name() string { return "tool_output_trim" }

// Condense returns a Job whose condensation hides no messages but has Trims.
func (o ToolOutputTrim) Condense(in Input) Decision {
	limit, stays := cmp.Or(o.MaxEventLength, DefaultEventLength), in.stays()
	found := trims(in, firstNew(in.View), func(item session.Item) (session.Trim, bool) {
		if item.Trim != nil && item.Trim.Cut() || stays(&item) {
			return session.Trim{}, false
		}
		return shortenItem(in, item, limit)
	})
	return trimDecision(in, o.Name(), found)
}

// trimDecision returns the decision to apply trims to results that have just arrived.
func trimDecision(in Input, condenser string, trims []session.Trim) Decision {
	if len(trims) == 0 {
		return Decision{}
	}
	c := trimCut(in, trims)
	if c.ForgottenTokens <= 0 {
		return Decision{}
	}
	return Decision{Job: &job{name: condenser, due: Due{Need: Need{Reason: session.ReasonArrival}}, cut: c}}
}

// Range of the lengths, in characters, to which results are cut if a request does not fit otherwise.
const (
	longestTrim  = 16000
	shortestTrim = 500
)

// Shorten returns a job that cuts results as little as needed for a request to fit its window: those that have just arrived,
// or all. Results trimmed before are cut further. It returns nil if no length makes the request fit.
func Shorten(in Input, all bool) Job {
	from := firstNew(in.View)
	if all {
		from = 0
	}
	for length := longestTrim; length >= shortestTrim; length /= 2 {
		cut := trims(in, from, func(item session.Item) (session.Trim, bool) { return shortenItem(in, item, length) })
		if len(cut) == 0 {
			continue
		}
		if c := trimCut(in, cut); c.After.Tokens <= Room(in) {
			return &job{name: ToolOutputTrim{}.Name(), due: Due{Need: Need{Reason: session.ReasonArrival, Hard: true}}, cut: c}
		}
	}
	return nil
}

func trims(in Input, from int, cut func(session.Item) (session.Trim, bool)) (found []session.Trim) {
	for _, item := range in.View.Items[from:] {
		if t, ok := cut(item); ok {
			found = append(found, t)
		}
	}
	return found
}

// firstNew returns the index of the first item that is new to the model: everything after the history's last assistant
// message, whether the view shows that one or not.
func firstNew(v *session.View) int {
	first := firstUnanswered(v.History)
	n := len(v.Items)
	for n > 0 && (v.Items[n-1].Index < 0 || v.Items[n-1].Index >= first) {
		n--
	}
	return n
}

// shortenItem trims an item to limit characters. It reports false unless the item is a result as the client sent it or as
// trimmed before, is too long, and has fewer tokens when cut.
func shortenItem(in Input, item session.Item, limit int) (session.Trim, bool) {
	replaced := item.Trim == nil && !in.View.Verbatim(&item) // by another condenser
	if item.Kind != session.Observation || len(item.Raw) <= limit || replaced || lasts(in.View, &item) {
		return session.Trim{}, false
	}
	content, err := readResult(in.Codec, in.View, &item)
	if err != nil || len(content.Images)+len(content.Files) > 0 {
		return session.Trim{}, false
	}
	t, ok := cutText(content.Text, limit)
	if !ok {
		return session.Trim{}, false
	}
	t.Pos = in.View.History.Pos(item.Index)
	t.Tidy = item.Trim != nil && item.Trim.Tidy
	t.Named = in.Thread.Recall
	_, fewerTokens := rewriteMessage(&in, item, RenderTrim(content.Text, t))
	return t, fewerTokens
}

// rewriteMessage returns an item's message with another text, and reports whether that has fewer tokens than the item.
func rewriteMessage(in *Input, item session.Item, text string) (raw []byte, fewerTokens bool) {
	raw, err := in.Codec.Rewrite(in.View.History.Messages[item.Index].Raw, text)
	if err != nil {
		return nil, false
	}
	rewritten := item
	rewritten.Raw = raw
	sizes := in.Measure([]session.Item{item, rewritten})
	return raw, sizes[1] < sizes[0]
}

// trimCut returns the cut that hides no messages but records the trims.
func trimCut(in Input, trims []session.Trim) (c Cut) {
	after := reshaped(in, withTrims(in, trims))
	c.Trims = trims
	c.ForgottenTokens = in.Total - after.Total
	c.Before = session.Size{Events: len(in.View.Items), Tokens: in.Total}
	c.After = session.Size{Events: len(in.View.Items), Tokens: after.Total}
	c.cover(in.View, trims[len(trims)-1].Pos)
	if last := in.View.History.LastSealed(); last > trims[0].Pos {
		c.Stripped = last
	}
	return c
}

// withTrims returns the view with the given trims applied.
func withTrims(in Input, trims []session.Trim) *session.View {
	v := *in.View
	v.Items = slices.Clone(v.Items)
	next := 0 // in trims
	for i := 0; i < len(v.Items) && next < len(trims); i++ {
		item := &v.Items[i]
		if item.Index >= 0 && v.History.Pos(item.Index) == trims[next].Pos {
			item.Raw, item.Trim = v.History.Messages[item.Index].Raw, &trims[next]
			next++
		}
	}
	Render(in.Codec, &v)
	return &v
}

// cutText returns the trim that keeps limit characters of a text, half of them at either end, rounded down to whole lines if
// a line ends nearby. It reports false if the text is short enough.
func cutText(text string, limit int) (session.Trim, bool) {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return session.Trim{}, false
	}
	head, tail := ends(text, limit)
	const near = 10 // a tenth of either part is given up for whole lines
	if at := strings.LastIndexByte(text[:head], '\n'); at >= 0 && head-at <= head/near {
		head = at + 1
	}
	if at := strings.IndexByte(text[tail:], '\n'); at >= 0 && at < (len(text)-tail)/near {
		tail += at + 1
	}
	return session.Trim{Head: head, Tail: len(text) - tail}, true
}

// RenderTrim returns the text of a message as a trim shows it: the first and last bytes, and between them a note that says
// how much is missing and how to get it. The result for a given text and trim must never change, since it has been forwarded
// before. A trim that leaves nothing out or does not fit the text returns the text.
func RenderTrim(text string, t session.Trim) string {
	head, tail := bounds(text, t)
	if head == tail {
		return text
	}
	missing := text[head:tail]
	first := strings.Count(text[:head], "\n") + 1
	last := first + strings.Count(strings.TrimSuffix(missing, "\n"), "\n")
	how := "run the tool again with a narrower range to see them"
	if t.Named {
		how = fmt.Sprintf("recall has them as event %d", t.Pos)
	}
	return fmt.Sprintf("%s\n[%d of %d characters left out here, lines %d to %d; %s]\n%s",
		text[:head], utf8.RuneCountInString(missing), utf8.RuneCountInString(text), first, last, how, text[tail:])
}

// bounds returns where the beginning that a trim shows ends, and where the end begins: both len(text) if it shows all.
func bounds(text string, t session.Trim) (head, tail int) {
	if t.Head < 0 || t.Tail < 0 || t.Head >= len(text) || t.Tail >= len(text)-t.Head {
		return len(text), len(text)
	}
	head, tail = t.Head, len(text)-t.Tail
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return head, tail
}
