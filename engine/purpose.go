package engine

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// readPurpose looks at how long an answer may be, at the system prompt and at the last message.
func (t *Turn) readPurpose() session.Purpose {
	if t.history.Len() == 0 {
		return session.PurposeMain
	}
	if t.in.Split.MaxOutput == 1 && t.history.Len() > 1 {
		return session.PurposeProbe
	}
	last := t.history.Message(t.history.Len())
	if last.Kind != session.User {
		return session.PurposeMain
	}
	system := ""
	for i := range t.in.Split.Messages {
		if m := &t.in.Split.Messages[i]; m.Kind == session.System && m.Spoken == 0 {
			system = t.text(m)
			break
		}
	}
	side := agents.SideRequest(agents.Request{
		System: system, User: t.text(last), Turn: t.in.Header(agents.TurnHeader), Alone: t.history.Len() == 1, Calls: t.called(), Tools: len(t.in.Split.Tools) > 0,
	})
	if side == "" {
		return session.PurposeMain
	}
	return session.Purpose(side)
}

// called reports whether the history calls tools.
func (t *Turn) called() bool {
	return slices.ContainsFunc(t.in.Split.Messages, func(m session.Message) bool { return m.Kind == session.Action })
}

func (t *Turn) text(m *session.Message) string { return textOf(t.in.Dialect, m) }

func textOf(d dialect.Dialect, m *session.Message) string {
	c, err := d.Read(m.Raw)
	if err != nil {
		return ""
	}
	return c.Text
}

// compactions names the compactions that upstream made and that the history begins with.
func (t *Turn) compactions() (marks []string) {
	for i := range t.in.Split.Messages {
		if m := &t.in.Split.Messages[i]; m.Kind == session.System && m.Attached {
			c, _ := t.in.Dialect.Read(m.Raw) // what cannot be read names nothing
			for _, f := range c.Files {
				if f.ID != "" {
					marks = append(marks, f.ID)
				}
			}
		}
	}
	return marks
}

// textsRead bounds how many messages are searched for traces, from each end of a history.
const textsRead = 4

// texts gives what names upstream's compactions, and the texts at both ends of the history, where clients put what they carry over
// from another.
func (t *Turn) texts() []string {
	out := t.compactions()
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
