package admin

import (
	"context"
	"net/http"
	"time"
)

// Audit keeps what people read and change.
type Audit interface {
	Note(ctx context.Context, e AuditEntry) error
	// Notes returns the entries of a day in UTC, newest first.
	Notes(ctx context.Context, day time.Time) ([]AuditEntry, error)
}

// AuditEntry says what someone read or changed.
type AuditEntry struct {
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`
	Role   Role      `json:"role"`
	Did    string    `json:"did"` // such as "read content"
	Change bool      `json:"change"`
	On     string    `json:"on,omitempty"` // a path of the inspector
	Tenant string    `json:"tenant,omitempty"`
	Detail string    `json:"detail,omitempty"`
	From   string    `json:"from"` // remote address
}

// note writes an entry for a request. Without an audit log it does nothing.
func (a *api) note(r *http.Request, e AuditEntry) error {
	if a.o.Audit == nil {
		return nil
	}
	i := who(r)
	e.Time, e.Who, e.Role, e.From = time.Now().UTC(), i.name, i.role, r.RemoteAddr
	return a.o.Audit.Note(r.Context(), e) //nolint:wrapcheck // it names its operation
}

// readAgain is after how long reading the same session is noted again.
const readAgain = 10 * time.Minute

// noteRead notes that someone reads content: of the same session once in ten minutes.
func (a *api) noteRead(r *http.Request, on, tenant string) error {
	key := who(r).name + "\x00" + on + "\x00" + time.Now().Truncate(readAgain).Format(time.RFC3339)
	if _, noted := a.readers.Get(key); noted {
		return nil
	}
	if err := a.note(r, AuditEntry{Did: "read content", On: on, Tenant: tenant}); err != nil {
		return err
	}
	a.readers.Add(key, struct{}{})
	return nil
}
