package session

import (
	"context"
	"time"
)

// Outbox keeps which condensations are still to be told of elsewhere. A Store implements it.
type Outbox interface {
	// Enqueue notes that a condensation is to be told of which is about to be logged: once that is durable, so is the notice. It notes nothing,
	// and reports false, where limit are waiting for their tenant already.
	Enqueue(ctx context.Context, n Notice, limit int) (bool, error)
	// Enqueued gives at most limit of a tenant's notices, oldest first, without the first from of them, and how many there are in all.
	Enqueued(ctx context.Context, tenant string, from, limit int) ([]Notice, int, error)
	// Dequeue forgets a notice. One that is not there is no error.
	Dequeue(ctx context.Context, n Notice) error
}

// Notice names a condensation that has no id yet.
type Notice struct {
	Tenant string
	Thread ThreadID
	Made   time.Time // Condensation.Time
}

// Named gives the condensation that a notice names, nil if its thread does not have it.
func (n *Notice) Named(t *Thread) *Condensation {
	for i := range t.Condensations {
		if c := &t.Condensations[i]; c.ID.Thread == n.Thread && c.Time.Equal(n.Made) {
			return c
		}
	}
	return nil
}
