package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

type eventRow struct {
	Thread   session.ThreadID `json:"thread"`
	Seq      uint64           `json:"seq"`
	Kind     string           `json:"kind"`
	Position int              `json:"position"` // 0: not part of the chain
	Tokens   int              `json:"tokens"`
	Digest   string           `json:"digest,omitempty"`
	Time     time.Time        `json:"time"`
	Message  json.RawMessage  `json:"message,omitempty"`
}

type eventList struct {
	Events []eventRow `json:"events"`
	Next   uint64     `json:"next,omitempty"`
}

func eventOf(thread session.ThreadID, e session.Event) eventRow {
	row := eventRow{Thread: thread, Seq: e.Seq, Kind: e.Kind.String(), Position: e.Pos, Tokens: e.Tokens, Time: e.Time}
	if !e.Digest.IsZero() {
		row.Digest = e.Digest.String()
	}
	return row
}

func (a *api) listEvents(r *http.Request, q query) (any, error) {
	from, err := q.number("from", 1, 1, 1<<50)
	if err != nil {
		return nil, err
	}
	limit, err := q.number("limit", usualPage, 1, largestPage)
	if err != nil {
		return nil, err
	}
	content, err := q.flag("content")
	if err != nil {
		return nil, err
	}
	t, err := a.threadAt(r)
	if err != nil {
		return nil, err
	}
	events, err := a.o.Store.Events(r.Context(), t.ID, uint64(from), limit) //nolint:gosec // between 1 and 1<<50
	if errors.Is(err, session.ErrNotFound) {
		return nil, noThread()
	}
	if err != nil {
		return nil, err
	}
	return eventPage(t, events, content), nil
}

func eventPage(t session.Thread, events []session.Event, content bool) eventList {
	list := eventList{Events: make([]eventRow, len(events))}
	for i, e := range events {
		list.Events[i] = eventOf(t.ID, e)
		if content && len(e.Payload) > 0 {
			list.Events[i].Message = e.Payload
		}
	}
	if n := len(events); n > 0 && events[n-1].Seq < t.Seq {
		list.Next = events[n-1].Seq + 1
	}
	return list
}
