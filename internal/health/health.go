// Package health answers whether the service lives, may be given requests, and has started. Each probe is a list of
// checks, which run when a probe asks.
package health

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// State is how a check found things.
type State string

// The states of a check. Degraded is worth a look and no reason to send requests elsewhere.
const (
	OK       State = "ok"
	Degraded State = "degraded"
	Failed   State = "failed"
)

// Check looks at one thing. Look is called concurrently, and returns by ctx's end; detail is shown to anyone who asks, so
// it holds nothing that is not ours to show.
type Check struct {
	Name string
	Look func(ctx context.Context) (state State, detail string)
}

// Probes are the questions that can be asked.
type Probes struct {
	Live    []Check // failed: start the process again
	Ready   []Check // failed: send no requests for now
	Startup []Check // failed: not yet
}

// looking bounds one answer.
const looking = 2 * time.Second

// Paths of the probes.
const (
	LivePath    = "/livez"
	ReadyPath   = "/readyz"
	StartupPath = "/startupz"
)

// Register has a mux answer GET and HEAD of the probes' paths, and of /healthz, which is /livez.
func (p Probes) Register(mux *http.ServeMux) {
	mux.Handle("GET "+LivePath, probe(p.Live))
	mux.Handle("GET /healthz", probe(p.Live))
	mux.Handle("GET "+ReadyPath, probe(p.Ready))
	mux.Handle("GET "+StartupPath, probe(p.Startup))
}

// result is what a probe answers: the worst of its checks' states, and each check.
type result struct {
	Status State            `json:"status"`
	Checks map[string]found `json:"checks"`
}

type found struct {
	Status State  `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// probe is a list of checks as a page: 200 unless one failed, 503 then.
type probe []Check

func (p probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), looking)
	defer cancel()
	all := p.look(ctx)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if all.Status == Failed {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(all) // the client has left
}

func (p probe) look(ctx context.Context) result {
	all := result{Status: OK, Checks: map[string]found{}}
	for _, check := range p {
		state, detail := check.Look(ctx)
		all.Checks[check.Name] = found{state, detail}
		all.Status = worse(all.Status, state)
	}
	return all
}

func worse(a, b State) State {
	if a == Failed || b == OK {
		return a
	}
	return b
}
