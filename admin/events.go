package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

type eventRow struct {
	Thread   session.ThreadID `json:"thread"`
	Seq      uint64           `json:"seq"`
	Kind     string           `json:"kind"`
	Position int              `json:"position"` // 0: outside the chain
	Tokens   int              `json:"tokens"`
	Digest   string           `json:"digest,omitempty"`
	Time     time.Time        `json:"time"`
	Message  json.RawMessage  `json:"message,omitempty"`
}

type eventList struct {
	Events []eventRow `json:"events"`
	Next   uint64     `json:"next,omitempty"`
}

func (e entry) row() eventRow {
	row := eventRow{Thread: e.thread, Seq: e.Seq, Kind: e.Kind.String(), Position: e.Pos, Tokens: e.Tokens, Time: e.Time}
	if !e.Digest.IsZero() {
		row.Digest = e.Digest.String()
	}
	return row
}

func (a *api) listEvents(r *http.Request, q *query) (any, error) {
	from, limit, content := q.number("from", 1, 1<<50), q.number("limit", defaultPageSize, maxPageSize), q.flag("content")
	if content {
		if err := readsContent.permit(who(r)); err != nil {
			return nil, err
		}
	}
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	if content {
		if err := a.noteRead(r, "/s/"+string(t.Session), t.Tenant); err != nil {
			return nil, err
		}
	}
	events, err := a.o.Store.Events(r.Context(), t.ID, uint64(from), limit) //nolint:gosec // between 1 and 1<<50
	end := limit
	for end < len(events) && events[end].Seq == events[end-1].Seq {
		end++
	}
	events = events[:min(end, len(events))] // the last entry may have several events
	if err == nil && content {
		err = session.ReadContent(r.Context(), a.o.Store, events, int(a.o.MaxBytes))
	}
	if errors.Is(err, session.ErrTooLarge) {
		return nil, fault(http.StatusConflict, "page_too_large", "The messages of this page are too large. Ask for fewer with limit, or leave out content.")
	}
	if err != nil {
		return nil, replaceNotFound(err, errNoThread)
	}
	list := eventList{Events: make([]eventRow, len(events))}
	for i, e := range events {
		list.Events[i] = entry{e, t.ID}.row()
		if content && len(e.Payload) > 0 {
			list.Events[i].Message = jsonValue(e.Payload)
		}
	}
	if n := len(events); n > 0 && events[n-1].Seq < t.Seq {
		list.Next = events[n-1].Seq + 1
	}
	return list, nil
}

// jsonValue returns a message as one JSON value: an array if the message consists of several elements of a list, as in
// the Responses API.
func jsonValue(raw []byte) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	return slices.Concat([]byte{'['}, raw, []byte{']'})
}
