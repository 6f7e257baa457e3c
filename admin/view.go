package admin

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The statuses of a message say what the view shows of it.
const (
	kept      = "kept"
	trimmed   = "trimmed"   // shown in part
	rewritten = "rewritten" // its content is replaced
	forgotten = "forgotten" // a condensation hides it
	leftOut   = "left_out"  // the condenser drops it from every request, without a condensation
)

type viewItem struct {
	Status  string          `json:"status"` // kept, trimmed, rewritten or summary
	Kind    string          `json:"kind"`
	Event   *eventRow       `json:"event,omitempty"`
	Summary *condensationID `json:"summary_of,omitempty"`
	Message json.RawMessage `json:"message"`
}

// viewHead is the common beginning of the view and the diff of a thread.
type viewHead struct {
	Session session.SessionID `json:"session"`
	Thread  session.ThreadID  `json:"thread"`
	Log     size              `json:"log"`
	View    size              `json:"view"`
	Applied []condensationID  `json:"applied"`
}

type viewBody struct {
	viewHead
	Items []viewItem `json:"items"`
}

type diffEvent struct {
	eventRow
	Status   string          `json:"status"`
	HiddenBy *condensationID `json:"hidden_by,omitempty"`
	Index    *int            `json:"view_index,omitempty"`
}

type summaryRow struct {
	ID     condensationID `json:"condensation"`
	Before int            `json:"before_position"`
	Index  int            `json:"view_index"`
	Tokens int            `json:"tokens"`
	Text   string         `json:"text"`
}

type diffBody struct {
	viewHead
	Summary *summaryRow `json:"summary,omitempty"`
	Events  []diffEvent `json:"events"`
}

// shown is a thread's history with its view.
type shown struct {
	engine.Shown
	thread  session.Thread
	entries []entry // in the client's order; an item's Index refers to it
}

// show reads the thread named by a request and asks the engine for its view.
func (a *api) show(r *http.Request, q *query) (*shown, error) {
	model := q.text("model")
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	h, err := a.readHistory(r.Context(), t)
	if err != nil {
		return nil, err
	}
	if err := a.rewind(r, q, h); err != nil {
		return nil, err
	}
	if err := a.noteRead(r, "/s/"+string(t.Session), t.Tenant); err != nil {
		return nil, err
	}
	entries := h.messages()
	past, err := a.past(r.Context(), h.thread, entries, model)
	if err != nil {
		return nil, err
	}
	view, err := a.o.Forwarder.Show(past)
	if err != nil {
		return nil, err
	}
	return &shown{Shown: view, thread: h.thread, entries: entries}, nil
}

// status returns the status of the message that an item of the view was made from.
func (s *shown) status(item session.Item) string {
	switch {
	case item.Trim != nil:
		return trimmed
	case !bytes.Equal(item.Raw, s.entries[item.Index].Payload):
		return rewritten
	}
	return kept
}

func (s *shown) head() viewHead {
	return viewHead{
		Session: s.thread.Session, Thread: s.thread.ID, Log: size(s.Before), View: size(s.After),
		Applied: rows(s.View.Applied, func(c session.Condensation) condensationID { return condensationID(c.ID) }),
	}
}

func (a *api) view(r *http.Request, q *query) (any, error) {
	s, err := a.show(r, q)
	if err != nil {
		return nil, err
	}
	out := viewBody{viewHead: s.head(), Items: []viewItem{}}
	for i, item := range s.View.Items {
		row := viewItem{Kind: item.Kind.String(), Message: jsonValue(s.Messages[i])}
		if item.Index < 0 {
			row.Status = "summary"
			if c := s.View.Summary(); c != nil {
				row.Summary = new(condensationID(c.ID))
			}
		} else {
			row.Status, row.Event = s.status(item), new(s.entries[item.Index].row())
		}
		out.Items = append(out.Items, row)
	}
	return out, nil
}

func (a *api) diff(r *http.Request, q *query) (any, error) {
	s, err := a.show(r, q)
	if err != nil {
		return nil, err
	}
	out := diffBody{viewHead: s.head(), Events: make([]diffEvent, len(s.entries))}
	hidden := s.hiddenBy()
	for i, e := range s.entries {
		out.Events[i] = diffEvent{eventRow: e.row(), Status: leftOut}
		if id, ok := hidden[e.Pos]; ok {
			out.Events[i].Status, out.Events[i].HiddenBy = forgotten, &id
		}
	}
	for i, item := range s.View.Items {
		if item.Index >= 0 {
			out.Events[item.Index].Status, out.Events[item.Index].Index = s.status(item), &i
		} else if c := s.View.Summary(); c != nil {
			out.Summary = &summaryRow{ID: condensationID(c.ID), Before: c.Offset, Index: i, Tokens: c.SummaryTokens, Text: item.Summary}
		}
	}
	return out, nil
}

// hiddenBy maps the position of each hidden message to the first condensation that hides it.
func (s *shown) hiddenBy() map[int]condensationID {
	hidden := map[int]condensationID{}
	for _, c := range s.View.Applied {
		for _, f := range c.Forgotten {
			for p := f.From; p < f.To; p++ {
				if _, already := hidden[p]; !already {
					hidden[p] = condensationID(c.ID)
				}
			}
		}
	}
	return hidden
}
