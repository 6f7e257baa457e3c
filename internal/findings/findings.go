// Package findings tells sinks what condensations found: decisions, facts and open tasks of the records that stand for what they hide. A
// notice in the store comes before each such condensation, so what was promised is told at least once, by any replica that lives, off the path
// of requests.
package findings

import (
	"context"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Told is what a sink is told of one condensation. It may be told twice, under the same id.
type Told struct {
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

// telling is what there is to tell of a condensation.
func telling(t *session.Thread, c *session.Condensation, findings []record.Finding) *Told {
	return &Told{
		ID:     fmt.Sprintf("%s-%d-%x", c.ID.Thread, c.ID.Seq, c.Time.UnixNano()), // a thread that was lost begins again, and counts anew
		Tenant: t.Tenant, Session: t.Session, Thread: t.ID, Time: c.Time.UTC(), Reason: c.Reason, Condenser: c.Condenser, Model: c.Model,
		Findings: findings,
	}
}

// Sink is where findings go.
type Sink interface {
	// Open is called when there is something to tell.
	Open(ctx context.Context) (Line, error)
}

// Line is an open sink. Its errors hold nothing of what it was told, and no secret.
type Line interface {
	// Tell returns when the sink has taken it. A *RefusedError says that others may be taken all the same.
	Tell(ctx context.Context, t *Told) error
	Close()
}

// RefusedError is why a sink does not take what it was told.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "the sink refuses it: " + e.Why }

// promises reports whether a condensation has anything to tell: a model wrote its record, and that has findings.
func promises(c *session.Condensation) bool {
	return c.Model != "" && c.Answers() && len(record.Findings(c.Summary)) > 0
}
