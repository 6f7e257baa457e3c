package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxKey bounds a session key, in bytes.
const maxKey = 256

// identify reads the session key that a request carries, and its parent session's; empty: none. They only narrow the scope in which its
// history is searched for. A key that is too long or not printable ASCII counts as absent.
func (s *Settings) identify(header func(string) string, fields map[string]string) (key, parent string) {
	key, parent = s.sessionKey(header, fields)
	if key == "" || parent != "" {
		return key, parent
	}
	for _, name := range agents.ParentHeaders() {
		if v := header(name); IsSessionKey(v) && v != key {
			return key, v
		}
	}
	return key, ""
}

// sessionKey reads the first session key in the configured headers and fields, and the parent's key if the header names a sub-agent.
func (s *Settings) sessionKey(header func(string) string, fields map[string]string) (key, parent string) {
	for _, name := range s.Headers {
		v := header(name)
		if !IsSessionKey(v) {
			continue
		}
		if !strings.EqualFold(name, agents.SubAgent) {
			return v, ""
		}
		if parent := header(agents.SubAgentSession); IsSessionKey(parent) {
			return parent + "/" + v, parent
		}
	}
	for _, path := range s.Fields {
		if v := fields[path]; IsSessionKey(v) {
			return v, ""
		}
	}
	return "", ""
}

// IsSessionKey reports whether v can be a session key: 1 to 256 bytes of printable ASCII.
func IsSessionKey(v string) bool {
	return v != "" && len(v) <= maxKey && strings.IndexFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// Credential reads the keys that a client sent. The first one selects the tenant. All of them together tell clients apart: a gateway may
// send the same bearer token for all its users, and a key for each of them in another header.
func Credential(header func(string) string, query string) (keys []string, all string) {
	add := func(name, key string) {
		if key != "" {
			keys = append(keys, key)
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
	values, _ := url.ParseQuery(query) // if it is malformed, use what could be read
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if agents.IsCredentialParameter(name) {
			add("?"+name, values.Get(name))
		}
	}
	return keys, all
}

// readPurpose infers the request's purpose from its output limit, its system prompt and its last message. For a summary that the client makes
// of its history it also returns which client that is, if it is known.
func (t *Turn) readPurpose() (session.Purpose, agents.Compactor) {
	n := t.history.Len()
	switch {
	case n == 0:
		return session.PurposeMain, agents.Compactor{}
	case n > 1 && t.in.Split.MaxOutput == 1:
		return session.PurposeProbe, agents.Compactor{}
	}
	last := t.history.Message(n)
	if last.Kind != session.User || last.Relayed {
		return session.PurposeMain, agents.Compactor{}
	}
	system, all := "", t.in.Split.Messages
	if i := slices.IndexFunc(all, func(m session.Message) bool { return m.Kind == session.System && m.Spoken == 0 && !m.Lasts }); i >= 0 {
		system = t.text(&all[i])
	}
	calls := slices.ContainsFunc(all, func(m session.Message) bool { return m.Kind == session.Action })
	request := agents.Request{
		System: system, User: t.text(last), Turn: t.in.Header(agents.TurnHeader), Alone: n == 1, Calls: calls, Tools: len(t.in.Split.Tools) > 0 || t.in.Split.DefinesTools,
	}
	side := cmp.Or(session.Purpose(agents.SideRequest(request)), session.PurposeMain)
	if side == session.PurposeCompaction {
		return side, agents.CompactorOf(request)
	}
	return side, agents.Compactor{}
}

// text returns the text of a message, empty if it cannot be read.
func (t *Turn) text(m *session.Message) string { return textOf(t.in.Dialect, m) }

func textOf(d dialect.Dialect, m *session.Message) string {
	c, _ := d.Read(m.Raw)
	return c.Text
}

// textsRead is how many messages at each end of a history are searched for traces.
const textsRead = 4

// texts returns the ids of upstream's compactions, and the texts at both ends of the history, where clients put what they carry over
// from another history.
func (t *Turn) texts() (out []string) {
	for i := range t.in.Split.Messages {
		if m := &t.in.Split.Messages[i]; m.Kind == session.System && m.Attached {
			c, _ := t.in.Dialect.Read(m.Raw) // an unreadable message names no file
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

// markTransient marks what an agent adds for a single request, between the messages or at the end of the newest one. It is not part of
// the history, since later requests do not have it.
func markTransient(d dialect.Dialect, split *dialect.Request) *dialect.Request {
	own := *split
	writable := func(i int) *session.Message {
		if &own.Messages[0] == &split.Messages[0] { // the slice may be shared with other requests
			own.Messages = slices.Clone(own.Messages)
		}
		return &own.Messages[i]
	}
	for i := 0; i+1 < len(own.Messages); i++ {
		user, reply := &own.Messages[i], &own.Messages[i+1]
		if user.Kind != session.User || reply.Kind != session.Agent || !agents.MayBeContext(user.Raw) {
			continue
		}
		if agents.Context(textOf(d, user), textOf(d, reply)) {
			for _, m := range [...]*session.Message{writable(i), writable(i + 1)} {
				m.Kind, m.Spoken = session.System, m.Kind
			}
		}
	}
	if rest := withoutReminder(d, own.Messages); rest != nil {
		m := writable(len(own.Messages) - 1)
		m.Lasting, m.Digest = rest.Raw, rest.Digest
	}
	return &own
}

// markResults marks the messages with the given indexes, which are system messages, as results.
func markResults(split *dialect.Request, results []int) *dialect.Request {
	if len(results) == 0 {
		return split
	}
	own := *split
	own.Messages = slices.Clone(own.Messages) // the slice may be shared with other requests
	for _, i := range results {
		own.Messages[i].Kind = session.Observation
	}
	return &own
}

// Before messages are decoded, a piece of a reminder is searched for: reminderPiece bytes, starting reminderAt bytes before the end.
const (
	reminderAt    = 110
	reminderPiece = 40
)

// mayEndAlike reports whether two messages may end with the same text, without decoding them.
func mayEndAlike(a, b []byte) bool {
	if len(a) < reminderAt || len(b) < reminderAt {
		return false
	}
	from := len(b) - reminderAt
	return bytes.Contains(a[max(len(a)-2*reminderAt, 0):], b[from:from+reminderPiece])
}

// withoutReminder returns the newest message without the reminder at its end, if it is a user message that ends with the same reminder
// as the system prompt. Otherwise it returns nil.
func withoutReminder(d dialect.Dialect, messages []session.Message) *session.Message {
	if len(messages) < 2 {
		return nil
	}
	system, last := &messages[0], &messages[len(messages)-1]
	if system.Kind != session.System || last.Kind != session.User || last.Attached || !mayEndAlike(system.Raw, last.Raw) {
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
	if split := splitMessage(d, raw); len(split) == 1 {
		return &split[0]
	}
	return nil
}

// splitMessage splits a message as if it were a request of its own. It returns nil if the message cannot be read.
func splitMessage(d dialect.Dialect, raw []byte) []session.Message {
	return splitMessages(d, [][]byte{raw})
}

// splitMessages splits messages as if they were a request. It returns nil if they cannot be read.
func splitMessages(d dialect.Dialect, raw [][]byte) []session.Message {
	split, err := d.Split("", d.Compose(raw))
	if err != nil {
		return nil
	}
	return split.Messages
}

// lastingTokens counts the part of a message that later requests have, too. The rest is counted with the system messages.
func (t *Turn) lastingTokens(m *session.Message) int {
	if m.Lasting == nil {
		return t.tokens(m)
	}
	return t.tokens(&session.Message{Raw: m.Lasting, Digest: m.Digest})
}
