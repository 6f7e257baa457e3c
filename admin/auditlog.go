package admin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// auditLog keeps the audit log in the store's totals: those of a day have a row for each entry. So replicas share it, entries are only added, and
// the store deletes old days.
type auditLog struct {
	store  session.Journal
	writer string

	mu     sync.Mutex
	number uint64
}

// NewAudit returns the audit log in a store.
func NewAudit(store session.Journal) Audit {
	return &auditLog{store: store, writer: "audit-" + rand.Text()[:10]}
}

// auditPeriod is the period of the entries of a day.
func auditPeriod(day time.Time) string { return "audit-" + day.UTC().Format(time.DateOnly) }

func (l *auditLog) Note(ctx context.Context, e AuditEntry) error {
	row, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode audit entry: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	batch := session.JournalBatch{
		Writer: l.writer, Number: l.number, Totals: []session.Total{{Period: auditPeriod(e.Time), Row: string(row), Values: []int64{1}}},
	}
	if err := l.store.WriteJournal(ctx, batch); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

func (l *auditLog) Notes(ctx context.Context, day time.Time) ([]AuditEntry, error) {
	stored, err := l.store.Totals(ctx, auditPeriod(day))
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var all []AuditEntry
	for _, t := range stored {
		var e AuditEntry
		if json.Unmarshal([]byte(t.Row), &e) == nil { // others are of a later version
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b AuditEntry) int { return b.Time.Compare(a.Time) })
	return all, nil
}
