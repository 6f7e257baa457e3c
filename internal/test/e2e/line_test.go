package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// line connects the agent to proxies. The test decides which proxy gets each exchange, and may kill and start proxies in between.
// A line records the proxy's response headers. It belongs to one player, and needs no lock.
type line struct {
	to     func(x exchange) *process // called before each exchange
	now    exchange
	placed []place
	client http.Transport
}

// exchange is one request of the agent.
type exchange struct {
	Step int
	Path string // below /v1
	Body []byte
}

// place is the session and thread of an exchange in the proxy's response headers.
type place struct {
	exchange
	Session, Thread string
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	l.now.Path, l.now.Body = strings.TrimPrefix(req.URL.Path, "/v1"), body
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.URL.Host = l.to(l.now).Addr
	resp, err := l.client.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	l.placed = append(l.placed, placeOf(l.now, resp))
	return resp, nil
}

func placeOf(x exchange, resp *http.Response) place {
	return place{x, resp.Header.Get("X-Dewpoint-Session"), resp.Header.Get("X-Dewpoint-Thread")}
}

// play plays a run over the line and fails the test for each violation. It sets the options that the line determines.
func (l *line) play(t testing.TB, run replay.Run, o judge.Options) judge.Report {
	t.Helper()
	defer l.client.CloseIdleConnections()
	o.URL = func(int) string { return "http://proxy/v1" }
	o.Client = &http.Client{Transport: l}
	o.Model, o.Expect.Summarisers = judge.Model, []string{judge.Summariser}
	before := o.Before
	o.Before = func(step int) {
		l.now = exchange{Step: step}
		if before != nil {
			before(step)
		}
	}
	report, err := judge.Play(t.Context(), run, o)
	if o.Expect.Tolerant { // not always recognised: the test checks the rest itself
		report.Violations = slices.DeleteFunc(report.Violations, func(v error) bool { return strings.Contains(v.Error(), ": one thread: ") })
	}
	if err = errors.Join(append(report.Violations, err)...); err != nil {
		t.Fatal(err)
	}
	return report
}

// oneThread fails the test unless all exchanges belong to one thread of one session.
func oneThread(t testing.TB, placed []place) {
	t.Helper()
	if err := sameThread(placed); err != nil {
		t.Error(err)
	}
}

func sameThread(placed []place) error {
	if len(placed) == 0 || placed[0].Session == "" || placed[0].Thread == "" {
		return errors.New("the first exchange was not recognised")
	}
	for _, p := range placed[1:] {
		if p.Session != placed[0].Session || p.Thread != placed[0].Thread {
			return fmt.Errorf("step %d is in session %q, thread %q; it began in session %q, thread %q",
				p.Step, p.Session, p.Thread, placed[0].Session, placed[0].Thread)
		}
	}
	return nil
}
