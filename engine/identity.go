package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// identity is what a request says of the conversation it belongs to. It only narrows the scope in which the history is
// searched for.
type identity struct {
	Key    string // session key, empty if none
	Parent string // session key of the parent, empty if none
}

// maxKey bounds a session key, in bytes.
const maxKey = 256

// identify reads a request's identity. A key that is too long or not plain text counts as absent.
func (s *Settings) identify(header func(string) string, fields map[string]string) identity {
	found := s.identityKey(header, fields)
	for _, name := range agents.ParentHeaders() {
		if v := header(name); found.Key != "" && found.Parent == "" && usable(v) && v != found.Key {
			found.Parent = v
		}
	}
	return found
}

func (s *Settings) identityKey(header func(string) string, fields map[string]string) identity {
	for _, name := range s.Headers {
		v := header(name)
		if !usable(v) {
			continue
		}
		if !strings.EqualFold(name, agents.SubAgent) {
			return identity{Key: v}
		}
		if parent := header(agents.SubAgentSession); usable(parent) {
			return identity{Key: parent + "/" + v, Parent: parent}
		}
	}
	for _, path := range s.Fields {
		if v := fields[path]; usable(v) {
			return identity{Key: v}
		}
	}
	return identity{}
}

// usable reports whether v can be a session key: 1 to 256 bytes of printable ASCII.
func usable(v string) bool {
	return v != "" && len(v) <= maxKey && strings.IndexFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// Credential reads the keys that a client sent: the first, which finds its tenant, and all of them together, which tell clients
// apart. A gateway may give each of its users the same bearer token, and a key of his own in another header.
func Credential(header func(string) string, query string) (first, all string) {
	add := func(name, key string) {
		if key != "" {
			first = cmp.Or(first, key)
			all += fmt.Sprintf("%s %d %s\n", name, len(key), key)
		}
	}
	for _, name := range agents.CredentialHeaders() {
		key := header(name)
		if scheme, token, ok := strings.Cut(key, " "); ok && strings.EqualFold(scheme, "Bearer") {
			key = strings.TrimSpace(token)
		}
		add(name, key)
	}
	values, _ := url.ParseQuery(query) // of one that is malformed, what can be read
	for _, name := range agents.CredentialQuery() {
		add("?"+name, values.Get(name))
	}
	return first, all
}

// readPurpose looks at how long an answer may be, at the system prompt and at the last message.
func (t *Turn) readPurpose() session.Purpose {
	switch n := t.history.Len(); {
	case n == 0:
		return session.PurposeMain
	case n > 1 && t.in.Split.MaxOutput == 1:
		return session.PurposeProbe
	}
	last := t.history.Message(t.history.Len())
	if last.Kind != session.User {
		return session.PurposeMain
	}
	system, all := "", t.in.Split.Messages
	if i := slices.IndexFunc(all, func(m session.Message) bool { return m.Kind == session.System && m.Spoken == 0 }); i >= 0 {
		system = t.text(&all[i])
	}
	calls := slices.ContainsFunc(all, func(m session.Message) bool { return m.Kind == session.Action })
	side := agents.SideRequest(agents.Request{
		System: system, User: t.text(last), Turn: t.in.Header(agents.TurnHeader), Alone: t.history.Len() == 1, Calls: calls, Tools: len(t.in.Split.Tools) > 0,
	})
	return cmp.Or(session.Purpose(side), session.PurposeMain)
}

func (t *Turn) text(m *session.Message) string { return textOf(t.in.Dialect, m) }

func textOf(d dialect.Dialect, m *session.Message) string {
	c, err := d.Read(m.Raw)
	if err != nil {
		return ""
	}
	return c.Text
}

// textsRead bounds how many messages are searched for traces, from each end of a history.
const textsRead = 4

// texts gives what names upstream's compactions, and the texts at both ends of the history, where clients put what they carry over
// from another.
func (t *Turn) texts() (out []string) {
	for i := range t.in.Split.Messages {
		if m := &t.in.Split.Messages[i]; m.Kind == session.System && m.Attached {
			c, _ := t.in.Dialect.Read(m.Raw) // what cannot be read names nothing
			for _, f := range c.Files {
				if f.ID != "" {
					out = append(out, f.ID)
				}
			}
		}
	}
	n := t.history.Len()
	for p := 1; p <= n; p++ {
		if p > textsRead && p <= n-textsRead {
			continue
		}
		if m := t.history.Message(p); m.Kind == session.User || m.Kind == session.Agent {
			out = append(out, t.text(m))
		}
	}
	return out
}

// lasting marks what an agent puts between the messages, or behind the newest one, for one request alone: it is no part of the history,
// which goes on without it.
func lasting(d dialect.Dialect, split *dialect.Request) *dialect.Request {
	own := *split
	change := func(i int) *session.Message {
		if &own.Messages[0] == &split.Messages[0] { // they may be shared with other requests
			own.Messages = slices.Clone(own.Messages)
		}
		return &own.Messages[i]
	}
	for i := 0; i+1 < len(own.Messages); i++ {
		user, reply := &own.Messages[i], &own.Messages[i+1]
		if user.Kind == session.User && reply.Kind == session.Agent && agents.MayBeContext(user.Raw) && agents.Context(textOf(d, user), textOf(d, reply)) {
			for _, m := range [...]*session.Message{change(i), change(i + 1)} {
				m.Kind, m.Spoken = session.System, m.Kind
			}
		}
	}
	if rest := withoutReminder(d, own.Messages); rest != nil {
		m := change(len(own.Messages) - 1)
		m.Lasting, m.Digest = rest.Raw, rest.Digest
	}
	return &own
}

// Where a piece of a reminder is looked for before messages are read: so many bytes before the end of a message, and how long it is.
const (
	reminderAt    = 110
	reminderPiece = 40
)

// withoutReminder is the newest message, a user's, without a reminder at its end that stands at the end of the system prompt, too; nil if
// there is none.
func withoutReminder(d dialect.Dialect, messages []session.Message) *session.Message {
	if len(messages) < 2 {
		return nil
	}
	system, last := &messages[0], &messages[len(messages)-1]
	if system.Kind != session.System || last.Kind != session.User || last.Attached || !endAlike(system.Raw, last.Raw) {
		return nil
	}
	rest, reminded := agents.WithoutReminder(textOf(d, system), textOf(d, last))
	if !reminded {
		return nil
	}
	raw, err := d.Rewrite(last.Raw, rest)
	if err != nil {
		return nil
	}
	if alone := splitAlone(d, raw); len(alone) == 1 {
		return &alone[0]
	}
	return nil
}

// splitAlone splits a message as if it came in a request of its own. What cannot be read is none.
func splitAlone(d dialect.Dialect, raw []byte) []session.Message {
	split, err := d.Split(d.Compose([][]byte{raw}))
	if err != nil {
		return nil
	}
	return split.Messages
}

// endAlike reports whether two messages may end with the same text, without decoding them.
func endAlike(a, b []byte) bool {
	if len(a) < reminderAt || len(b) < reminderAt {
		return false
	}
	from := len(b) - reminderAt
	return bytes.Contains(a[max(len(a)-2*reminderAt, 0):], b[from:from+reminderPiece])
}

// lastingTokens counts what of a message the client goes on to send. The rest is counted with the system messages.
func (t *Turn) lastingTokens(m *session.Message) int {
	if m.Lasting == nil {
		return t.tokens(m)
	}
	return t.tokens(&session.Message{Raw: m.Lasting, Digest: m.Digest})
}
