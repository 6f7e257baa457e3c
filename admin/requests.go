package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Journal reads what was recorded about requests. It is implemented by journal.Journal.
type Journal interface {
	// Steps reads the steps of a session with numbers below before, or the newest if before is 0: at most limit of them, newest first.
	Steps(ctx context.Context, id session.SessionID, before uint64, limit int) ([]account.Step, error)
	// Step reads the newest step of a tenant with a request id. The error wraps session.ErrNotFound if there is none.
	Step(ctx context.Context, tenant, request string) (account.Step, error)
	// Rows reads the totals of all days from that of since to that of until, in UTC.
	Rows(ctx context.Context, since, until time.Time) ([]account.Row, error)
}

// requestBody is the record of a request.
type requestBody struct {
	Request  string            `json:"request"`
	Session  session.SessionID `json:"session"`
	Thread   session.ThreadID  `json:"thread"`
	Begun    time.Time         `json:"begun"`
	Step     int               `json:"step"` // 0: not known
	Tenant   string            `json:"tenant"`
	Protocol string            `json:"protocol"`
	Model    string            `json:"model"`
	Agent    string            `json:"agent"`
	Version  string            `json:"agent_version"`
	Status   int               `json:"status"`
	Code     string            `json:"code"`

	Usage  requestUsage `json:"usage"`
	Before sizeBody     `json:"before"`
	After  sizeBody     `json:"after"`
	Parts  partsBody    `json:"parts"`

	Due           session.Reason `json:"due"`
	Did           string         `json:"did"`
	Whole         string         `json:"whole"`
	Condensations int            `json:"condensations"`
	Split         session.Cause  `json:"split"`
	SplitAt       int            `json:"split_at"` // 0: none
	Miss          account.Miss   `json:"cache_miss"`

	USD   usdBody   `json:"usd"`
	Times timesBody `json:"ms"`
}

type requestUsage struct {
	Reported    bool `json:"reported"`
	Input       int  `json:"input"`
	Cached      int  `json:"cached"`
	Written     int  `json:"cache_written"`
	WrittenLong int  `json:"cache_written_1h"`
	Output      int  `json:"output"`
}

type sizeBody struct {
	Events int `json:"events"`
	Tokens int `json:"tokens"`
}

type partsBody struct {
	System int `json:"system"`
	Tools  int `json:"tools"`
	Head   int `json:"head"`
	Record int `json:"record"`
	Kept   int `json:"kept"`
	New    int `json:"new"`
}

type usdBody struct {
	Charged account.Pico `json:"charged"`
	Saved   account.Pico `json:"saved"`
}

// timesBody holds parts of a request's time in milliseconds, as account.Times.
type timesBody struct {
	Read     float64 `json:"read"`
	Resolve  float64 `json:"resolve"`
	Overhead float64 `json:"overhead"`
	Waited   float64 `json:"waited"`
	Upstream float64 `json:"upstream"`
	Answer   float64 `json:"answer"`
	Held     float64 `json:"held"`
	Whole    float64 `json:"whole"`
}

type requestList struct {
	Requests []requestBody `json:"requests"`
	Next     string        `json:"next,omitempty"`
}

func requestOf(s account.Step) requestBody {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	u, t := &s.Usage, &s.Times
	return requestBody{
		Request: s.Request, Session: s.Session, Thread: s.Thread, Begun: s.Begun, Step: s.Answer, Tenant: s.Tenant, Protocol: s.Protocol,
		Model: s.Model, Agent: s.Agent, Version: s.Version, Status: s.Status, Code: s.Code,
		Usage:  requestUsage{u.Reported, u.Input, u.Cached, u.Written, u.WrittenLong, u.Output},
		Before: sizeBody(s.Before), After: sizeBody(s.After), Parts: partsBody(s.Parts),
		Due: s.Due, Did: s.Did, Whole: s.Whole, Condensations: s.Made, Split: s.Split, SplitAt: s.SplitAt, Miss: s.Miss,
		USD: usdBody{account.FromNano(s.Charged), account.FromNano(s.Saved)},
		Times: timesBody{
			ms(t.Read), ms(t.Resolve), ms(t.Overhead), ms(t.Waited), ms(t.Upstream), ms(t.Answer), ms(t.Held), ms(t.Whole),
		},
	}
}

// listRequests lists the requests of a session, newest first.
func (a *api) listRequests(r *http.Request, q *query) (any, error) {
	id, limit := session.SessionID(q.id(r, "session")), q.number("limit", defaultPageSize, maxPageSize)
	before, err := strconv.ParseUint(q.values["cursor"], 10, 64)
	if q.values["cursor"] != "" && (err != nil || before == 0) {
		q.refuse("cursor", "Give the 'next' of the previous page, unchanged.")
	}
	if q.err != nil {
		return nil, q.err
	}
	ses, err := a.o.Store.Session(r.Context(), id)
	if err != nil {
		return nil, replaceNotFound(err, errNoSession)
	}
	if !who(r).sees(ses.Tenant) {
		return nil, errNoSession
	}
	steps, err := a.o.Journal.Steps(r.Context(), id, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	list := requestList{Requests: rows(steps, requestOf)}
	if n := len(steps); n == limit && steps[n-1].Number > 1 {
		list.Next = strconv.FormatUint(steps[n-1].Number, 10)
	}
	return list, nil
}

// validRequest matches the ids of requests, as the proxy takes them from clients or makes them.
var validRequest = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)

// oneRequest shows the request with an X-Dewpoint-Request-Id.
func (a *api) oneRequest(r *http.Request, q *query) (any, error) {
	id := r.PathValue("request")
	if !validRequest.MatchString(id) {
		q.refuse("request", "The id of a request consists of 1 to 64 letters, digits and '_.:-'.")
		return nil, q.err
	}
	tenant := q.text("tenant")
	if q.err != nil {
		return nil, q.err
	}
	s, err := a.recordedStep(r, tenant, id)
	if err != nil {
		return nil, replaceNotFound(err, errNoRequest)
	}
	ses, err := a.o.Store.Session(r.Context(), s.Session) // its tenant is written out in full
	if err != nil {
		return nil, replaceNotFound(err, errNoRequest)
	}
	if !who(r).sees(ses.Tenant) {
		return nil, errNoRequest
	}
	return requestOf(s), nil
}

// recordedStep reads the newest step with a request id of a tenant or, if tenant is empty, of all tenants that a token opens. The error wraps
// session.ErrNotFound if there is none.
func (a *api) recordedStep(r *http.Request, tenant, id string) (newest account.Step, err error) {
	found := false
	for _, t := range a.tenantsOf(who(r)) {
		if tenant != "" && t.Name != tenant {
			continue
		}
		s, err := a.o.Journal.Step(r.Context(), t.Name, id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return newest, fmt.Errorf("find request: %w", err)
		}
		if !found || s.Begun.After(newest.Begun) {
			newest, found = s, true
		}
	}
	if !found {
		return newest, session.ErrNotFound
	}
	return newest, nil
}
