package condense

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// ToolOutputTrim shows an oversized tool result in part: its beginning and its end, with a note in the place of the
// middle. It decides on results as they arrive, before any model has seen them, and what it decided stays for good: the
// prompt cache loses nothing. Results with images are left alone.
type ToolOutputTrim struct {
	MaxEventLength int // characters of a result that are shown; 0: DefaultEventLength
}

func (ToolOutputTrim) Name() string { return "tool_output_trim" }

// Condense gives a Job whose condensation forgets nothing but has Trims.
func (o ToolOutputTrim) Condense(in Input) Decision {
	limit := cmp.Or(o.MaxEventLength, DefaultEventLength)
	return arrivalOf(in, o.Name(), trims(in, arrived(in.View), func(item session.Item) (session.Trim, bool) {
		if item.Trim != nil && item.Trim.Cut() {
			return session.Trim{}, false
		}
		return shorter(in, item, limit)
	}))
}

// arrivalOf is the decision to show results as they have just been trimmed.
func arrivalOf(in Input, condenser string, trims []session.Trim) Decision {
	if len(trims) == 0 {
		return Decision{}
	}
	c := frozen(in, trims)
	if c.ForgottenTokens <= 0 {
		return Decision{}
	}
	return Decision{Job: &job{name: condenser, due: Due{Need: Need{Reason: session.ReasonArrival}}, cut: c}}
}

// The lengths, in characters, to which results are cut when a request does not fit otherwise.
const (
	longestTrim  = 16000
	shortestTrim = 500
)

// Shorten shows results in part, as little as makes a request fit its window: those that have just come, or all. What was trimmed
// before is trimmed further. Nil if no length makes it fit.
func Shorten(in Input, all bool) Job {
	from := arrived(in.View)
	if all {
		from = 0
	}
	for length := longestTrim; length >= shortestTrim; length /= 2 {
		cut := trims(in, from, func(item session.Item) (session.Trim, bool) { return shorter(in, item, length) })
		if len(cut) == 0 {
			continue
		}
		if c := frozen(in, cut); c.After.Tokens <= Room(in) {
			return &job{name: ToolOutputTrim{}.Name(), due: Due{Need: Need{Reason: session.ReasonArrival, Hard: true}}, cut: c}
		}
	}
	return nil
}

// trims lists what is trimmed of the view's items from one on.
func trims(in Input, from int, cut func(session.Item) (session.Trim, bool)) (found []session.Trim) {
	for _, item := range in.View.Items[from:] {
		if t, ok := cut(item); ok {
			found = append(found, t)
		}
	}
	return found
}

// arrived is the item from which on everything is new to the model: what came after the history's last assistant
// message, whether the view shows that one or not.
func arrived(v *session.View) int {
	last := len(v.History.Messages) - 1
	for last >= 0 && v.History.Messages[last].Kind != session.Agent && v.History.Messages[last].Kind != session.Action {
		last--
	}
	n := len(v.Items)
	for n > 0 && (v.Items[n-1].Index < 0 || v.Items[n-1].Index > last) {
		n--
	}
	return n
}

// shorter cuts one item, if it is a result as the client sent it, perhaps trimmed before, too long, and smaller when cut.
func shorter(in Input, item session.Item, limit int) (session.Trim, bool) {
	if item.Kind != session.Observation || len(item.Raw) <= limit || item.Trim == nil && !pristine(in.View, item) {
		return session.Trim{}, false
	}
	own := in.View.History.Messages[item.Index].Raw
	content, err := in.Codec.Read(own)
	if err != nil || len(content.Images)+len(content.Files) > 0 {
		return session.Trim{}, false
	}
	text, tidied := content.Text, item.Trim != nil && item.Trim.Tidy
	if tidied {
		text = tidy.Text(text)
	}
	t, ok := cutText(text, limit)
	if !ok {
		return session.Trim{}, false
	}
	t.Pos, t.Tidy, t.Named = in.View.History.Pos(item.Index), tidied, in.Thread.Recall
	_, less := smaller(&in, item, own, RenderTrim(text, t))
	return t, less
}

// smaller writes an item's message with another text. It reports whether that has fewer tokens than the item.
func smaller(in *Input, item session.Item, own []byte, text string) (raw []byte, less bool) {
	raw, err := in.Codec.Rewrite(own, text)
	if err != nil {
		return nil, false
	}
	rewritten := item
	rewritten.Raw = raw
	sizes := in.Measure([]session.Item{item, rewritten})
	return raw, sizes[1] < sizes[0]
}

// pristine reports whether an item is still as the client sent it.
func pristine(v *session.View, item session.Item) bool {
	if item.Index < 0 {
		return false
	}
	own := v.History.Messages[item.Index].Raw
	return len(own) > 0 && len(item.Raw) == len(own) && &item.Raw[0] == &own[0]
}

// frozen is the cut that forgets nothing, but remembers the trims.
func frozen(in Input, trims []session.Trim) (c Cut) {
	after := reshaped(in, retrimmed(in, trims))
	c.Trims, c.ForgottenTokens = trims, in.Total-after.Total
	c.Before = session.Size{Events: len(in.View.Items), Tokens: in.Total}
	c.After = session.Size{Events: len(in.View.Items), Tokens: after.Total}
	c.cover(in.View, trims[len(trims)-1].Pos)
	if last := LastSealed(in.View.History); last > trims[0].Pos {
		c.Stripped = last
	}
	return c
}

// retrimmed is the view with results trimmed in another way.
func retrimmed(in Input, trims []session.Trim) *session.View {
	v := *in.View
	v.Items = slices.Clone(v.Items)
	for i, next := 0, 0; i < len(v.Items) && next < len(trims); i++ {
		item := &v.Items[i]
		if item.Index >= 0 && v.History.Pos(item.Index) == trims[next].Pos {
			item.Raw, item.Trim = v.History.Messages[item.Index].Raw, &trims[next]
			next++
		}
	}
	Render(in.Codec, &v)
	return &v
}

// cutText gives the head and the tail of a text that has more than limit characters: half of them each, ending between
// lines where one ends near by. It reports false for a text that is short enough.
func cutText(text string, limit int) (session.Trim, bool) {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return session.Trim{}, false
	}
	head, tail := ends(text, limit)
	const near = 10 // a share of the piece: one tenth of it is given up for a whole line
	if at := strings.LastIndexByte(text[:head], '\n'); at >= 0 && head-at <= head/near {
		head = at + 1
	}
	if at := strings.IndexByte(text[tail:], '\n'); at >= 0 && at < (len(text)-tail)/near {
		tail += at + 1
	}
	return session.Trim{Head: head, Tail: len(text) - tail}, true
}

// RenderTrim is the text of a message as a trim shows it: the first and last bytes, and between them a note which says
// how much is missing and how to get it. The same text and trim always give the same, since what was forwarded once must
// be forwarded again. A trim that leaves nothing out, or does not fit the text, gives the text.
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

// bounds are where the beginning ends that a trim shows of a text, and where the end begins; the same where all of it is shown.
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
