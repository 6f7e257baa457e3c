package engine

import (
	"crypto/sha256"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// size measures the view that is forwarded, before calibration: item by item, unless it is the history as the client sent it.
func (t *Turn) size() session.Size {
	view := &t.shown.view
	if view.Identity() {
		return session.Size{Events: len(view.Items), Tokens: t.counted().before.Tokens + t.tailTokens()}
	}
	items := view.Items
	if t.alternates() {
		items, _ = t.written()
	}
	return session.Size{Events: len(view.Items), Tokens: t.counted().fixed + sum(t.itemTokens(items)) + t.tailTokens()}
}

// tailTokens counts what the model said in this turn so far.
func (t *Turn) tailTokens() int {
	if len(t.hidden.tail) == 0 {
		return 0
	}
	return sum(t.itemTokens([]session.Item{{Parts: t.hidden.tail}}))
}

// measured gives a condensation with token counts as the log keeps them: the whole as upstream charges it, parts before calibration, and
// both of what the log gives, whatever a condenser makes of that.
func (t *Turn) measured(c session.Condensation) session.Condensation {
	if n := len(t.shown.applied); n > 0 {
		c.Base = t.shown.applied[n-1].ID
	}
	before, after := t.project(t.shown.applied), t.project(append(slices.Clip(t.shown.applied), c))
	c.Before, c.After = t.charged(&before.view), t.charged(&after.view)
	c.ForgottenTokens, c.Request = t.ofMessages(before)-t.ofMessages(after), head(t.in.Split.Model)
	if c.Summary != "" {
		c.SummaryTokens = t.summaryTokens(c.Summary)
	}
	return c
}

// charged measures a view as upstream charges it, as far as that is known.
func (t *Turn) charged(v *session.View) session.Size {
	return session.Size{Events: len(v.Items), Tokens: t.Adjust(t.counted().fixed + sum(t.itemTokens(v.Items)))}
}

// ofMessages counts a view without its summary.
func (t *Turn) ofMessages(p projection) int {
	return sum(t.itemTokens(slices.DeleteFunc(p.view.Items, func(i session.Item) bool { return i.Index < 0 })))
}

// itemTokens counts items; those that a condenser rewrote as they are now.
func (t *Turn) itemTokens(items []session.Item) []int { return t.itemsBy(t.tokens, items) }

func (t *Turn) itemsBy(tokens func(*session.Message) int, items []session.Item) []int {
	out := make([]int, len(items))
	for i := range items {
		switch item := &items[i]; {
		case item.Parts != nil:
			for _, raw := range item.Parts {
				out[i] += tokens(ours(raw))
			}
		case item.Index >= 0:
			out[i] = tokens(t.message(item))
		case item.Summary != "":
			out[i] = t.summaryTokens(item.Text())
		default: // a message of ours between others
			out[i] = tokens(ours(item.Raw))
		}
	}
	return out
}

// ours is a message that no client sent.
func ours(raw []byte) *session.Message { return &session.Message{Raw: raw, Digest: sha256.Sum256(raw)} }

// summaryTokens counts the message that carries a summary.
func (t *Turn) summaryTokens(text string) int {
	return t.engine.counts.of(t.engine.counts.key(t.counter.Encoding(), []byte(text)), func() int {
		return t.counter.Message(session.Content{Role: "user", Text: text})
	})
}

// message is an item that is no summary, as it is shown.
func (t *Turn) message(item *session.Item) *session.Message {
	own := &t.in.Split.Messages[item.Index]
	if sameBytes(item.Raw, own.Raw) {
		return own
	}
	m := ours(item.Raw)
	m.Attached = own.Attached
	return m
}

// sameBytes reports whether two slices are one.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

func sum(ns []int) int {
	total := 0
	for _, n := range ns {
		total += n
	}
	return total
}

// adjust corrects a count by what was observed of the model, and by what upstream said of this very request.
func (t *Turn) adjust(count int) int {
	n := t.Adjust(count)
	if r := &t.relief; r.ours > 0 && r.files == 0 {
		return max(n, int(float64(r.theirs)/float64(r.ours)*float64(count)))
	}
	return n
}

// adjustItem corrects the count of one item. What upstream counted beyond ours is put down to images and files, if there are any.
func (t *Turn) adjustItem(item *session.Item, count int) int {
	n, r := t.adjust(count), &t.relief
	if r.files > 0 && item.Index >= 0 && t.in.Split.Messages[item.Index].Attached {
		return max(n, int(float64(r.theirs-(r.ours-r.files))/float64(r.files)*float64(count)))
	}
	return n
}

// fileTokens counts the messages of the view that have images or files.
func (t *Turn) fileTokens() (n int) {
	for i := range t.shown.view.Items {
		if item := &t.shown.view.Items[i]; item.Index >= 0 && t.in.Split.Messages[item.Index].Attached {
			n += t.tokens(t.message(item))
		}
	}
	return n
}

// corrector names what corrects counts. What is learnt where there are images or files, which are estimated, does not hold for text
// alone.
func (t *Turn) corrector(attached bool) string {
	name := t.counter.source
	if attached {
		name[0] ^= 1
	}
	return string(name[:])
}
