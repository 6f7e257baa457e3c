package admin

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

//go:embed openapi.yaml
var document []byte

// base is the path of this version of the API.
const base = "/api/v1"

const threadPath = "/sessions/{session}/threads/{thread}"

// route is one method of one path, below base.
type route struct {
	method, path string
	query        []string // parameters that it takes
	handle       func(*http.Request, *query) (any, error)
	status       int  // of success
	large        bool // reads messages: one at a time
	asks         bool // changes nothing, whatever its method
	body         bool // has one
}

func (a *api) routes() []route {
	return []route{
		{"GET", "/sessions", []string{"tenant", "key", "since", "cursor", "limit"}, a.listSessions, http.StatusOK, false, false, false},
		{"GET", "/sessions/{session}", nil, a.oneSession, http.StatusOK, false, false, false},
		{"DELETE", "/sessions/{session}", nil, a.deleteSession, http.StatusNoContent, false, false, false},
		{"GET", "/sessions/{session}/savings", nil, a.sessionSavings, http.StatusOK, false, false, false},
		{"GET", threadPath, nil, a.oneThread, http.StatusOK, false, false, false},
		{"GET", threadPath + "/events", []string{"from", "limit", "content"}, a.listEvents, http.StatusOK, true, false, false},
		{"GET", threadPath + "/condensations", []string{"from", "limit"}, a.listCondensations, http.StatusOK, true, false, false},
		{"GET", threadPath + "/view", []string{"model", "at", "request"}, a.view, http.StatusOK, true, false, false},
		{"GET", threadPath + "/diff", []string{"model", "at", "request"}, a.diff, http.StatusOK, true, false, false},
		{"GET", threadPath + "/savings", nil, a.threadSavings, http.StatusOK, false, false, false},
		{"POST", threadPath + "/condense", nil, a.condense, http.StatusAccepted, false, false, false},
		{"POST", "/explain", nil, a.explain, http.StatusOK, true, true, true},
		{"POST", "/unseal", nil, a.unseal, http.StatusOK, true, true, true},
		{"DELETE", "/sessions", []string{"tenant", "key"}, a.deleteSessions, http.StatusOK, false, false, false},
		{"GET", "/condensing", nil, a.condensing, http.StatusOK, false, false, false},
		{"PUT", "/condensing", nil, a.setLever, http.StatusOK, false, false, true},
		{"DELETE", "/condensing", nil, a.dropLever, http.StatusNoContent, false, false, false},
		{"PUT", "/tenants/{tenant}/condensing", nil, a.setLever, http.StatusOK, false, false, true},
		{"DELETE", "/tenants/{tenant}/condensing", nil, a.dropLever, http.StatusNoContent, false, false, false},
		{"GET", "/tenants", nil, a.tenants, http.StatusOK, false, false, false},
		{"GET", "/holdouts", nil, a.holdouts, http.StatusOK, false, false, false},
		{"GET", "/config", nil, a.config, http.StatusOK, false, false, false},
	}
}

// mount serves the routes, the document that describes them, and 405 where a path has other methods only.
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
			refuse(w, fault(http.StatusMethodNotAllowed, "method_not_allowed", "This path takes %s.", strings.Join(allowed, ", ")))
		})
	}
}

func unknownPath(w http.ResponseWriter, _ *http.Request) {
	refuse(w, fault(http.StatusNotFound, "not_found", "There is nothing at this path. The API is described by GET %s/openapi.yaml.", base))
}

// serve answers a request, and tells what went wrong.
func (a *api) serve(r route) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := a.answer(r, req)
		if err != nil {
			a.fail(w, err)
			return
		}
		if !safe(r.method) && !r.asks {
			a.o.Changed(Change{Method: r.method, Path: req.URL.Path, Query: req.URL.RawQuery, From: req.RemoteAddr})
		}
		if r.status == http.StatusNoContent {
			w.WriteHeader(r.status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(r.status)
		_, _ = w.Write(body) //nolint:gosec // JSON, and said to be; a client that has left needs no answer
	}
}

// answer checks a request and makes its answer.
func (a *api) answer(r route, req *http.Request) ([]byte, error) {
	q, err := readQuery(req.URL.RawQuery, r.query)
	if err != nil {
		return nil, err
	}
	if !r.body {
		if err := noBody(req); err != nil {
			return nil, err
		}
	}
	if r.large {
		select {
		case a.large <- struct{}{}:
			defer func() { <-a.large }()
		case <-req.Context().Done():
			return nil, errBusy()
		}
	}
	out, err := r.handle(req, q)
	if err != nil || r.status == http.StatusNoContent {
		return nil, err
	}
	return encode(out)
}

// encode leaves messages as the client wrote them, but for white space between tokens: nosniff keeps markup in them from
// being anything but text.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return b.Bytes(), nil
}

// fail answers an error. Those that are not meant for clients are reported, and told in general words.
func (a *api) fail(w http.ResponseWriter, err error) {
	var f *Fault
	switch {
	case errors.As(err, &f):
	case errors.Is(err, session.ErrUnavailable):
		a.o.Failed(err)
		f = fault(http.StatusServiceUnavailable, "store_unavailable", "The store cannot be reached. Try again shortly.")
		w.Header().Set("Retry-After", "1")
	default:
		a.o.Failed(err)
		f = fault(http.StatusInternalServerError, "internal_error", "The request failed. The log has the cause.")
	}
	refuse(w, f)
}
