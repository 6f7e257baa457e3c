// Package findings delivers the findings of condensations to sinks: decisions, facts and open tasks from the records that replace hidden
// messages. A notice is written to the store before such a condensation is logged, so its findings are delivered at least once, by any
// live replica, and no request waits for it.
package findings

import (
	"context"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Message holds the findings of one condensation. It may be delivered more than once, with the same id.
type Message struct {
	ID        string            `json:"id"`
	Tenant    string            `json:"tenant"`
	Session   session.SessionID `json:"session"`
	Thread    session.ThreadID  `json:"thread"`
	Time      time.Time         `json:"time"`
	Reason    session.Reason    `json:"reason"`
	Condenser string            `json:"condenser"`
	Model     string            `json:"model"` // that wrote the record
	Findings  []record.Finding  `json:"findings"`
}

// Sink is a destination of findings.
type Sink interface {
	// Open connects to the sink. It is called only when there is a message to send.
	Open(ctx context.Context) (Conn, error)
}

// Conn is a connection to a sink. Its errors must not contain a message's content, or a secret.
type Conn interface {
	// Send returns once the sink has accepted the message. A *RefusedError concerns this message only: others may be accepted.
	Send(ctx context.Context, m *Message) error
	Close()
}

// RefusedError is returned if a sink refuses a message.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "the sink refused the message: " + e.Why }
