package engine

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// leftOut stands between two messages that must not follow each other, where what stood between them is hidden.
const leftOut = "[Earlier messages are left out here.]"

// alternating writes a view's items for an upstream that wants users and assistants to take turns. Only what follows a gap is
// changed: a client's own order is passed on as it is.
type alternating struct {
	dialect dialect.Dialect
	out     []session.Item
	last    session.Kind // of the last message that is no system message, 0 if there is none yet
	user    int          // index in out of the last user message, -1 if there is none yet
}

// alternate gives a view's items, all of them written, so that roles alternate.
func alternate(d dialect.Dialect, items []session.Item) []session.Item {
	a := alternating{dialect: d, user: -1}
	next, gap := 0, false // the message that follows if nothing is hidden, and whether something is
	for _, item := range items {
		if item.Index < 0 {
			a.summary(item)
			gap = true
			continue
		}
		gap = gap || item.Index != next
		next = item.Index + 1
		switch {
		case item.Kind == session.System:
			a.out = append(a.out, item)
		case gap:
			a.afterGap(item)
			gap = false
		default:
			a.add(item)
		}
	}
	return a.out
}

func (a *alternating) add(item session.Item) {
	if item.Kind == session.User {
		a.user = len(a.out)
	}
	a.last = item.Kind
	a.out = append(a.out, item)
}

// say adds a message of our own.
func (a *alternating) say(kind session.Kind, raw []byte) {
	a.add(session.Item{Index: -1, Kind: kind, Raw: raw})
}

// merge puts a user message at the end of the last one, and reports whether there is one that takes it.
func (a *alternating) merge(raw []byte) bool {
	if a.user < 0 {
		return false
	}
	merged, err := a.dialect.Merge(a.out[a.user].Raw, raw)
	if err == nil {
		a.out[a.user].Raw = merged
	}
	return err == nil
}

// summary joins the user message before it. Where an assistant has spoken since, it is a message of its own.
func (a *alternating) summary(item session.Item) {
	if a.last == session.Agent || !a.merge(item.Raw) {
		a.add(item)
	}
}

// afterGap adds the first message after what is hidden.
func (a *alternating) afterGap(item session.Item) {
	switch speaks := item.Kind == session.Agent || item.Kind == session.Action; {
	case item.Kind == session.User && a.last == session.User && a.merge(item.Raw):
		return
	case item.Kind == session.User && a.last == session.Observation:
		a.say(session.Agent, a.dialect.Reply(leftOut))
	case speaks && a.last != session.User && a.last != session.Observation:
		a.say(session.User, a.dialect.Note(leftOut))
	}
	a.add(item)
}

// alternates reports whether the request's upstream is known to want roles to alternate.
func (t *Turn) alternates() bool { return t.relief.alternates || t.model.Alternates }

// Alternate has the view forwarded with alternating roles, because upstream refused it without. It reports whether that is another
// way than before.
func (t *Turn) Alternate() bool {
	if t.alternates() || !t.changed() {
		return false
	}
	t.relief.alternates = true
	return true
}
