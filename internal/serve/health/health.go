// Package health serves the liveness, readiness and startup probes. Each probe is a list of checks, which run when it is requested.
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

// State is the result of a check.
type State string

// States of a check. Degraded deserves attention, but is no reason to send requests elsewhere.
const (
	OK       State = "ok"
	Degraded State = "degraded"
	Failed   State = "failed"
)

// Check is one item of a probe. Look may be called concurrently, and must return when ctx ends. Its detail is public, so it must not contain
// anything confidential.
type Check struct {
	Name string
	Look func(ctx context.Context) (state State, detail string)
}

// Probes are the checks of each probe.
type Probes struct {
	Live    []Check // failed: restart the process
	Ready   []Check // failed: send no requests for now
	Startup []Check // failed: not started yet
}

// checkTimeout bounds all checks of a request together.
const checkTimeout = 2 * time.Second

// Paths of the probes.
const (
	LivePath    = "/livez"
	ReadyPath   = "/readyz"
	StartupPath = "/startupz"
)

// Register registers the probes for GET and HEAD, and /healthz as an alias of /livez.
func (p Probes) Register(mux *http.ServeMux) {
	mux.Handle("GET "+LivePath, probe(p.Live))
	mux.Handle("GET /healthz", probe(p.Live))
	mux.Handle("GET "+ReadyPath, probe(p.Ready))
	mux.Handle("GET "+StartupPath, probe(p.Startup))
}

// result is the response of a probe: the worst state of its checks, and each check.
type result struct {
	Status State            `json:"status"`
	Checks map[string]found `json:"checks"`
}

type found struct {
	Status State  `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// probe serves a list of checks. The status is 503 if one failed, otherwise 200.
type probe []Check

func (p probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
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
	_ = json.NewEncoder(w).Encode(all) // an error means that the client has left
}

// askTimeout bounds a call of Ask.
const askTimeout = 4 * time.Second

// Ask requests a probe from the process whose admin port is at addr, and returns the response body. It also returns an error if the status is
// not 200 or there is no response.
func Ask(ctx context.Context, addr, path string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+Reachable(addr)+path, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", path, err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // ignores the proxy of the environment
	resp, err := client.Do(req)
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

// Reachable returns an address to connect to from this machine, for an address that a server listens on.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // a server on all IPv6 addresses listens on IPv4, too
	}
	return net.JoinHostPort(host, port)
}
