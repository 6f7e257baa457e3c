// Package health answers whether the service lives, may be given requests, and has started. Each probe is a list of
// checks, which run when a probe asks.
package health

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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
	all := result{Status: OK, Checks: map[string]found{}}
	for _, check := range p {
		state, detail := check.Look(ctx)
		all.Checks[check.Name] = found{state, detail}
		if state == Failed || all.Status == OK {
			all.Status = state
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if all.Status == Failed {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(all) // the client has left
}

// asking bounds one question.
const asking = 4 * time.Second

// Ask puts a probe's question to the process whose admin port is at addr, and returns the answer as it came, with an error if that was a
// bad one or there was none.
func Ask(ctx context.Context, addr, path string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	resp, err := get(ctx, "http://"+Reachable(addr)+path)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case err != nil:
		return "", fmt.Errorf("ask %s: %w", path, err)
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("not healthy: %s", resp.Status)
	}
	return strings.TrimSpace(string(text)), err
}

func get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // of our own: no proxy from the environment
	return client.Do(req)
}

// Reachable is an address of this machine to connect to, for one that a server listens on.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // what listens on all addresses of IPv6 listens on those of IPv4 too
	}
	return net.JoinHostPort(host, port)
}
