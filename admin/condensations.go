package admin

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

type condensationID struct {
	Thread session.ThreadID `json:"thread"`
	Seq    uint64           `json:"seq"`
}

type size struct {
	Events int `json:"events"`
	Tokens int `json:"tokens"`
}

type usage struct {
	Input  int `json:"input"`
	Cached int `json:"cached"`
	Output int `json:"output"`
}

func usageOf(u session.Usage) usage { return usage{u.Input, u.Cached, u.Output} }

// positions is a range of positions, both ends included.
type positions struct {
	From int `json:"from"`
	To   int `json:"to"`
}

type trimRow struct {
	Pos    int       `json:"position"`
	Head   int       `json:"head"`
	Tail   int       `json:"tail"`
	Whole  bool      `json:"whole,omitempty"`
	Tidy   bool      `json:"tidy,omitempty"`
	Bare   bool      `json:"without_files,omitempty"`
	Copies []copyRow `json:"copies,omitempty"`
}

type copyRow struct {
	From   int `json:"from"`
	To     int `json:"to"`
	Source int `json:"source"`
	At     int `json:"at"`
}

func rowOfTrim(t session.Trim) trimRow {
	row := trimRow{Pos: t.Pos, Head: t.Head, Tail: t.Tail, Tidy: t.Tidy, Bare: t.Bare}
	row.Copies = rows(t.Copies, func(c session.Copy) copyRow { return copyRow(c) })
	if !t.Cut() {
		row.Head, row.Whole = 0, true
	}
	return row
}

type condensationRow struct {
	ID        condensationID  `json:"id"`
	Base      *condensationID `json:"base,omitempty"`
	Prefix    int             `json:"prefix"`
	Hash      string          `json:"hash"`
	Reason    session.Reason  `json:"reason"`
	Condenser string          `json:"condenser"`
	Model     string          `json:"model,omitempty"`
	making
	Summary         string      `json:"summary,omitempty"`
	SummaryTokens   int         `json:"summary_tokens"`
	SummaryAt       int         `json:"summary_before_position,omitempty"`
	Hidden          []positions `json:"hidden"`
	HiddenEvents    []eventRow  `json:"hidden_events"`
	ForgottenTokens int         `json:"forgotten_tokens"`
	Trimmed         []trimRow   `json:"trimmed"`
	Before          size        `json:"before"`
	After           size        `json:"after"`
	Usage           usage       `json:"usage"`
	Time            time.Time   `json:"time"`
}

// making says how a condensation was made.
type making struct {
	Provisional  string   `json:"provisional,omitempty"`
	RequestModel string   `json:"request_model,omitempty"`
	Prompt       string   `json:"prompt,omitempty"`
	Outcome      string   `json:"outcome"` // condensed or fallback
	Calls        int      `json:"calls"`
	Asked        string   `json:"asked,omitempty"`
	Reused       *usage   `json:"cached_usage,omitempty"`
	USD          *float64 `json:"usd"` // cost of the calls; null if a price is not known
	Took         float64  `json:"seconds"`
	Grounded     string   `json:"grounded,omitempty"`
	AddedTo      int      `json:"added_to_position,omitempty"`
	Topics       []string `json:"topics,omitempty"`
	Corrected    bool     `json:"corrected,omitempty"` // an operator has corrected the record
}

type condensationList struct {
	Condensations []condensationRow `json:"condensations"`
	Next          int               `json:"next,omitempty"`
}

// Pages of condensations are smaller than other pages, because each condensation lists the messages that it hides.
const (
	defaultCondensations = 20
	maxCondensations     = 50
)

func (a *api) listCondensations(r *http.Request, q *query) (any, error) {
	from, limit := q.number("from", 1, 1<<30), q.number("limit", defaultCondensations, maxCondensations)
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	h, err := a.readHistory(r.Context(), t)
	if err != nil {
		return nil, err
	}
	if who(r).mayRead() {
		if err := a.noteRead(r, "/s/"+string(t.Session), t.Tenant); err != nil {
			return nil, err
		}
	}
	first := min(from-1, len(t.Condensations))
	last := min(first+limit, len(t.Condensations))
	list := condensationList{Condensations: []condensationRow{}}
	for _, c := range t.Condensations[first:last] {
		text, err := a.summaryFor(r, c.ID)
		if err != nil {
			return nil, err
		}
		list.Condensations = append(list.Condensations, h.condensation(c, text))
	}
	if last < len(t.Condensations) {
		list.Next = last + 1
	}
	return list, nil
}

// summaryFor reads a summary for who may read content; others get "".
func (a *api) summaryFor(r *http.Request, id session.CondensationID) (string, error) {
	if !who(r).mayRead() {
		return "", nil
	}
	return a.summary(r.Context(), id)
}

func (h *history) condensation(c session.Condensation, summary string) condensationRow {
	row := condensationRow{
		ID: condensationID(c.ID), Prefix: c.Prefix, Hash: c.Hash.String(), Reason: c.Reason, Condenser: c.Condenser, Model: c.Model,
		Summary: summary, SummaryTokens: c.SummaryTokens, SummaryAt: c.Offset,
		Hidden: []positions{}, HiddenEvents: []eventRow{}, ForgottenTokens: c.ForgottenTokens, Trimmed: rows(c.Trims, rowOfTrim),
		Before: size(c.Before), After: size(c.After), Usage: usageOf(c.Used), Time: c.Time,
		making: making{
			Outcome: "condensed", RequestModel: c.Request, Prompt: c.Prompt, Calls: c.Calls, Took: c.Took.Seconds(),
			AddedTo: c.Added, Topics: c.Topics, Asked: string(c.Asked()), Grounded: c.Grounding.String(),
			Corrected: record.Parse(summary).Corrected,
		},
	}
	if c.Reused != (session.Usage{}) {
		row.Reused = new(usageOf(c.Reused))
	}
	if c.Provisional {
		row.Outcome, row.Provisional = "fallback", cmp.Or(c.Cause, "unknown")
	}
	if c.Unpriced == "" {
		row.USD = new(float64(c.Nano) / nanoPerUSD)
	}
	if c.Base != (session.CondensationID{}) {
		row.Base = new(condensationID(c.Base))
	}
	for _, f := range c.Forgotten {
		row.Hidden = append(row.Hidden, positions{From: f.From, To: f.To - 1})
		for p := max(f.From, 1); p < f.To && p <= len(h.chain); p++ {
			row.HiddenEvents = append(row.HiddenEvents, h.chain[p-1].row())
		}
	}
	return row
}

type condenseBody struct {
	Pending bool   `json:"pending"`
	Next    string `json:"next"`
}

// condense requests a condensation of a thread. The thread's next request performs it, because only a request carries the content that a
// summary is made from.
func (a *api) condense(r *http.Request, q *query) (any, error) {
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	if err := a.checkCondensable(t.Tenant); err != nil {
		return nil, err
	}
	if err := a.note(r, AuditEntry{Did: "asked for a condensation", Change: true, On: "/s/" + string(t.Session), Tenant: t.Tenant, Detail: string(t.ID)}); err != nil {
		return nil, err
	}
	if t.Requested == 0 {
		if err := a.o.Archive.Request(r.Context(), t.ID, time.Now()); err != nil {
			return nil, replaceNotFound(err, errNoThread)
		}
	}
	return condenseBody{Pending: true, Next: "The thread's next request is condensed before it is forwarded, with the reason " +
		"'request', if it holds anything that may be forgotten. Otherwise this stays pending."}, nil
}

// checkCondensable rejects a request for a condensation that would stay pending forever.
func (a *api) checkCondensable(tenant string) error {
	tenants := a.o.Settings.Tenants()
	i := slices.IndexFunc(tenants, func(t Tenant) bool { return t.Name == tenant })
	if i < 0 {
		return fault(http.StatusConflict, "tenant_unknown", "The thread's tenant is no longer configured.")
	}
	switch t := &tenants[i]; {
	case t.Condensing.InForce == ModeOff:
		return fault(http.StatusConflict, "condensing_off", "Condensing is switched off for the thread's tenant. GET %s/condensing shows until when.", base)
	case t.Condensing.InForce == ModeObserve:
		return fault(http.StatusConflict, "tenant_observes", "The thread's tenant only observes, so nothing is condensed for it.")
	case !t.Condenses:
		return fault(http.StatusConflict, "condenser_forgets_nothing", "The tenant's condenser (%s) never makes a condensation.", t.Condenser)
	}
	return nil
}
