package engine

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// leftOut stands between two messages that must not follow each other, where what stood between them is hidden.
const leftOut = "[Earlier messages are left out here.]"

// alternate writes a view's items, all of them written, for an upstream that wants users and assistants to take turns. Only what follows a
// gap is changed: a client's own order is passed on as it is.
func alternate(d dialect.Dialect, items []session.Item) (out []session.Item) {
	last, user := session.Kind(0), -1 // the kind of the last message that is no system message, and where in out the user's last one is
	add := func(item session.Item) {
		if item.Kind == session.User {
			user = len(out)
		}
		last, out = item.Kind, append(out, item)
	}
	merge := func(raw []byte) bool { // at the end of the user's last message, if there is one that takes it
		if user < 0 {
			return false
		}
		merged, err := d.Merge(out[user].Raw, raw)
		if err == nil {
			out[user].Raw = merged
		}
		return err == nil
	}
	next, gap := 0, false // the message that follows if nothing is hidden, and whether something is
	for _, item := range items {
		if item.Index < 0 { // the summary: where an assistant has spoken since the user's last message, it is one of its own
			if gap = true; last == session.Agent || !merge(item.Raw) {
				add(item)
			}
			continue
		}
		gap, next = gap || item.Index != next, item.Index+1
		if item.Kind == session.System {
			out = append(out, item)
			continue
		}
		if gap {
			gap = false
			speaks := item.Kind == session.Agent || item.Kind == session.Action
			switch {
			case item.Kind == session.User && last == session.User && merge(item.Raw):
				continue
			case item.Kind == session.User && last == session.Observation:
				add(session.Item{Index: -1, Kind: session.Agent, Raw: d.Reply(leftOut)})
			case speaks && last != session.User && last != session.Observation:
				add(session.Item{Index: -1, Kind: session.User, Raw: d.Note(leftOut)})
			}
		}
		add(item)
	}
	return out
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
