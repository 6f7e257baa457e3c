package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// pendingBody is the record that a thread will get once a condensation is due.
type pendingBody struct {
	Version   string         `json:"version"`
	Record    string         `json:"record"`
	Pinned    string         `json:"pinned"`
	Corrected bool           `json:"corrected"`
	Words     string         `json:"user_words"`
	Excerpts  string         `json:"excerpts"`
	Model     string         `json:"model"`
	Reason    session.Reason `json:"reason"`
	Hides     []positions    `json:"hides"`
	Tokens    int            `json:"summary_tokens"`
}

func bodyOf(p engine.Pending) pendingBody {
	sum := record.Parse(p.Summary)
	return pendingBody{
		Version: p.Version, Record: sum.Record, Pinned: sum.Pinned, Corrected: sum.Corrected, Words: sum.Words, Excerpts: sum.Excerpts,
		Model: p.Model, Reason: p.Reason, Tokens: p.SummaryTokens,
		Hides: rows(p.Forgotten, func(r session.Range) positions { return positions{From: r.From, To: r.To - 1} }),
	}
}

// pendingRecord shows the record that was prepared for a thread and is not applied yet.
func (a *api) pendingRecord(r *http.Request, q *query) (any, error) {
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	if err := a.noteRead(r, "/s/"+string(t.Session), t.Tenant); err != nil {
		return nil, err
	}
	p, err := a.o.Forwarder.Pending(r.Context(), t.ID)
	if err != nil {
		return nil, recordFault(err)
	}
	return bodyOf(p), nil
}

// maxCorrection is the maximum length of a corrected record, and of what is pinned to it, in bytes.
const (
	maxCorrection = 64 << 10
	maxPinned     = 4 << 10
)

// correctRecord replaces the record that was prepared for a thread by the operator's.
func (a *api) correctRecord(r *http.Request, q *query) (any, error) {
	if err := readsContent.permit(who(r)); err != nil { // the model reads what is written here, and the answer shows it
		return nil, err
	}
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	var asked struct {
		Version string `json:"version"`
		Record  string `json:"record"`
		Pinned  string `json:"pinned"`
	}
	if err := a.readBody(r, &asked); err != nil {
		return nil, err
	}
	switch {
	case asked.Version == "":
		return nil, badParam("version", "Give the version of the record that you have read: GET this path.")
	case strings.TrimSpace(asked.Record) == "" || len(asked.Record) > maxCorrection:
		return nil, badParam("record", "Give the whole record, of at most %d bytes.", maxCorrection)
	case len(asked.Pinned) > maxPinned:
		return nil, badParam("pinned", "Give at most %d bytes.", maxPinned)
	}
	entry := AuditEntry{Did: "corrected a record", Change: true, On: "/s/" + string(t.Session), Tenant: t.Tenant, Detail: string(t.ID)}
	if err := a.note(r, entry); err != nil {
		return nil, err
	}
	p, err := a.o.Forwarder.Correct(r.Context(), t.ID, asked.Version, asked.Record, asked.Pinned)
	if err != nil {
		return nil, recordFault(err)
	}
	return bodyOf(p), nil
}

// recordFault returns what to tell the client about an error of a pending record.
func recordFault(err error) error {
	switch {
	case errors.Is(err, session.ErrNotFound):
		return fault(http.StatusNotFound, "no_record", "No record is waiting for this thread: none was prepared, or it is applied already.")
	case errors.Is(err, session.ErrUnreadable):
		return fault(http.StatusConflict, "record_unreadable", "The record is encrypted under a key that is not configured, or damaged.")
	case errors.Is(err, session.ErrLocked):
		return fault(http.StatusConflict, "record_busy", "The thread is being condensed. Read the record again, and send the correction then.")
	case errors.Is(err, engine.ErrOtherVersion):
		return fault(http.StatusConflict, "record_changed", "The record has changed since it was read. Read it again.")
	case errors.Is(err, engine.ErrNotShorter):
		return fault(http.StatusBadRequest, "record_too_long", "The record is not shorter than the messages that it stands for. Shorten it.")
	}
	return err // it names its operation
}
