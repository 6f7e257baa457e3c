package engine

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// lasting marks what an agent puts between the messages, or behind the newest one, for one request alone: it is no part of the history,
// which goes on without it. Where there is none, as with most agents, the request stays as it is.
func lasting(d dialect.Dialect, split *dialect.Request) *dialect.Request {
	messages := split.Messages
	text := func(m *session.Message) string { return textOf(d, m) }
	change := func(i int) *session.Message {
		if len(messages) > 0 && &messages[0] == &split.Messages[0] { // they may be shared with other requests
			messages = slices.Clone(messages)
		}
		return &messages[i]
	}
	for i := 0; i+1 < len(messages); i++ {
		user, reply := &messages[i], &messages[i+1]
		if user.Kind == session.User && reply.Kind == session.Agent && agents.MayBeContext(user.Raw) && agents.Context(text(user), text(reply)) {
			for _, m := range [...]*session.Message{change(i), change(i + 1)} {
				m.Kind, m.Spoken = session.System, m.Kind
			}
		}
	}
	if raw, digest, reminded := withoutReminder(d, messages); reminded {
		m := change(len(messages) - 1)
		m.Lasting, m.Digest = raw, digest
	}
	if len(messages) == 0 || &messages[0] == &split.Messages[0] {
		return split
	}
	own := *split
	own.Messages = messages
	return &own
}

// Where a piece of a reminder is looked for before messages are read: so many bytes before the end of a message, and how long it is.
const (
	reminderAt    = 110
	reminderPiece = 40
)

// withoutReminder is the newest message, a user's, without a reminder at its end that stands at the end of the system prompt, too.
func withoutReminder(d dialect.Dialect, messages []session.Message) (raw []byte, digest session.Hash, reminded bool) {
	if len(messages) < 2 {
		return nil, digest, false
	}
	system, last := &messages[0], &messages[len(messages)-1]
	if system.Kind != session.System || last.Kind != session.User || last.Attached || !endAlike(system.Raw, last.Raw) {
		return nil, digest, false
	}
	rest, reminded := agents.WithoutReminder(textOf(d, system), textOf(d, last))
	if !reminded {
		return nil, digest, false
	}
	raw, err := d.Rewrite(last.Raw, rest)
	if err != nil {
		return nil, digest, false
	}
	alone, err := d.Split(d.Compose([][]byte{raw}))
	if err != nil || len(alone.Messages) != 1 {
		return nil, digest, false
	}
	return raw, alone.Messages[0].Digest, true
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
