package admin

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

//go:embed openapi.yaml
var document []byte

// base is the path prefix of this version of the API.
const base = "/api/v1"

const threadPath = "/sessions/{session}/threads/{thread}"

// route is one method of one path below base.
type route struct {
	method, path  string
	query         []string // accepted query parameters
	handle        func(*http.Request, *query) (any, error)
	status        int  // on success; 0: 200
	readsMessages bool // such requests run one at a time
	readOnly      bool // changes nothing, although its method is POST
	body          bool // accepts a body
	needs         need
}

// need is what a route takes.
type need int

const (
	figures      need = iota // any token; it shows figures only, of tenants that the token opens
	readsContent             // a token that opens content, of such tenants
	changes                  // an operator's token, for such tenants
	everything               // an operator's token that is not limited to some tenants
	totals                   // any token that is not limited to some tenants
)

// howToProveStart tells a caller on this machine how to be taken for who started the process.
const howToProveStart = "send the token of the link that it printed as 'Authorization: Bearer TOKEN', or set admin.token."

// permit returns why a request is refused to whom it is from.
func (n need) permit(i *identity) error {
	switch {
	case n == readsContent && !i.mayRead() && i.local:
		return fault(http.StatusForbidden, "content_needs_token", "Content is shown only to who started Dewpoint: "+howToProveStart)
	case (n == changes || n == everything) && !i.mayChange() && i.local:
		return fault(http.StatusForbidden, "change_needs_token", "Only who started Dewpoint may change things: "+howToProveStart)
	case n == readsContent && !i.mayRead(), (n == changes || n == everything) && !i.mayChange():
		return fault(http.StatusForbidden, "not_permitted", "The token's role (%s) does not permit this.", i.role)
	case (n == everything || n == totals) && !i.unlimited():
		return fault(http.StatusForbidden, "not_permitted", "The token is limited to some tenants, and this concerns all.")
	}
	return nil
}

// otherBody is a response that is not JSON.
type otherBody struct {
	contentType string
	text        []byte
}

func (a *api) routes() []route {
	view := []string{"model", "at", "request"}
	return []route{
		{method: "GET", path: "/sessions", query: []string{"tenant", "key", "since", "cursor", "limit"}, handle: a.listSessions},
		{method: "DELETE", path: "/sessions", query: []string{"tenant", "key"}, handle: a.deleteSessions, needs: changes},
		{method: "GET", path: "/sessions/{session}", handle: a.oneSession},
		{method: "DELETE", path: "/sessions/{session}", handle: a.deleteSession, status: http.StatusNoContent, needs: changes},
		{method: "POST", path: "/compact", handle: a.compact, status: http.StatusNoContent, needs: everything},
		{method: "GET", path: "/sessions/{session}/savings", handle: a.sessionSavings},
		{method: "GET", path: "/sessions/{session}/budgets", handle: a.sessionBudgets},
		{method: "GET", path: "/sessions/{session}/requests", query: []string{"cursor", "limit"}, handle: a.listRequests},
		{method: "GET", path: "/requests/{request}", query: []string{"tenant"}, handle: a.oneRequest},

		{method: "GET", path: threadPath, handle: a.oneThread},
		{method: "GET", path: threadPath + "/events", query: []string{"from", "limit", "content"}, handle: a.listEvents, readsMessages: true},
		{method: "GET", path: threadPath + "/condensations", query: []string{"from", "limit"}, handle: a.listCondensations, readsMessages: true},
		{method: "GET", path: threadPath + "/view", query: view, handle: a.view, readsMessages: true, needs: readsContent},
		{method: "GET", path: threadPath + "/diff", query: view, handle: a.diff, readsMessages: true, needs: readsContent},
		{method: "GET", path: threadPath + "/savings", handle: a.threadSavings},
		{method: "GET", path: threadPath + "/record", handle: a.pendingRecord, readsMessages: true, needs: readsContent},
		{method: "PUT", path: threadPath + "/record", handle: a.correctRecord, readsMessages: true, body: true, needs: changes},
		{method: "POST", path: threadPath + "/condense", handle: a.condense, status: http.StatusAccepted, needs: changes},

		{method: "POST", path: "/explain", handle: a.explain, readsMessages: true, readOnly: true, body: true, needs: readsContent},
		{method: "POST", path: "/unseal", handle: a.unseal, readsMessages: true, readOnly: true, body: true, needs: readsContent},

		{method: "GET", path: "/condensing", handle: a.condensing},
		{method: "PUT", path: "/condensing", handle: a.setOverride, body: true, needs: everything},
		{method: "DELETE", path: "/condensing", handle: a.dropOverride, status: http.StatusNoContent, needs: everything},
		{method: "PUT", path: "/tenants/{tenant}/condensing", handle: a.setOverride, body: true, needs: changes},
		{method: "DELETE", path: "/tenants/{tenant}/condensing", handle: a.dropOverride, status: http.StatusNoContent, needs: changes},

		{method: "GET", path: "/tenants", handle: a.tenants},
		{method: "GET", path: "/budgets", handle: a.budgets},
		{method: "GET", path: "/holdouts", handle: a.holdouts},
		{method: "GET", path: "/savings", query: []string{"since", "until", "by", "format"}, handle: a.report},
		{method: "GET", path: "/config", handle: a.config, needs: totals},
	}
}

// mount registers the routes, the document that describes them, and a 405 response for other methods of their paths.
func (a *api) mount(mux *http.ServeMux) {
	methods := map[string][]string{base + "/openapi.yaml": {"GET"}}
	for _, r := range a.routes() {
		mux.HandleFunc(r.method+" "+base+r.path, a.serve(r))
		methods[base+r.path] = append(methods[base+r.path], r.method)
	}
	mux.HandleFunc("GET "+base+"/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(document)
	})
	for path, allowed := range methods {
		if slices.Contains(allowed, http.MethodGet) {
			allowed = append(allowed, http.MethodHead)
		}
		slices.Sort(allowed)
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			refuse(w, fault(http.StatusMethodNotAllowed, "method_not_allowed", "This path accepts %s.", strings.Join(allowed, ", ")))
		})
	}
}

// serve returns the HTTP handler of a route. It reports successful changes.
func (a *api) serve(r route) http.HandlerFunc {
	status := cmp.Or(r.status, http.StatusOK)
	return func(w http.ResponseWriter, req *http.Request) {
		contentType, body, err := a.respond(r, req)
		if err != nil {
			a.fail(w, err)
			return
		}
		if !safe(r.method) && !r.readOnly {
			a.o.OnChange(Change{Method: r.method, Path: req.URL.Path, Query: loggedQuery(req.URL), From: req.RemoteAddr, Who: who(req).name})
		}
		if status == http.StatusNoContent {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write(body) //nolint:gosec // declared as JSON or CSV; a client that has left needs no response
	}
}

// loggedQuery returns the query string without the value of a session key.
func loggedQuery(u *url.URL) string {
	values := u.Query()
	if values.Has("key") {
		values.Set("key", "redacted")
	}
	return values.Encode()
}

// respond checks a request, runs its handler and returns the encoded result with its type.
func (a *api) respond(r route, req *http.Request) (contentType string, body []byte, err error) {
	if err := r.needs.permit(who(req)); err != nil {
		return "", nil, err
	}
	q, err := readQuery(req.URL.RawQuery, r.query)
	if err != nil {
		return "", nil, err
	}
	if !r.body {
		if err := checkNoBody(req); err != nil {
			return "", nil, err
		}
	}
	if r.readsMessages {
		select {
		case a.reading <- struct{}{}:
			defer func() { <-a.reading }()
		case <-req.Context().Done():
			return "", nil, errBusy
		}
	}
	out, err := r.handle(req, q)
	if err != nil || r.status == http.StatusNoContent {
		return "", nil, err
	}
	if other, is := out.(otherBody); is {
		return other.contentType, other.text, nil
	}
	body, err = encode(out)
	return "application/json", body, err
}

// encode returns v as JSON. Messages stay as the client wrote them, except for white space between tokens. HTML in them
// needs no escaping, since nosniff keeps browsers from rendering it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return b.Bytes(), nil
}

// fail sends an error. An error that is not a Fault is reported to OnError, and the client gets a generic message.
func (a *api) fail(w http.ResponseWriter, err error) {
	f := a.faultOf(err)
	if f.Code == errUnavailable.Code {
		w.Header().Set("Retry-After", "1")
	}
	refuse(w, f)
}

// faultOf returns an error as clients are told of it, and reports one that is not a Fault.
func (a *api) faultOf(err error) *Fault {
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, session.ErrUnavailable):
		a.o.OnError(err)
		return errUnavailable
	}
	a.o.OnError(err)
	return fault(http.StatusInternalServerError, "internal_error", "The request failed. See the log for the cause.")
}
