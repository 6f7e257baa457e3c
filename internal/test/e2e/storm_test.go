package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

const (
	stormRequests = 200
	stormClients  = 8
	stormBody     = 40_000 // bytes
)

// The kinds of requests in a storm. A header has the kind for the upstream.
const (
	kindWhole       = "whole"
	kindStream      = "stream"
	kindLeaveStream = "leave in the stream"
	kindLeaveHeader = "leave before the header"
	kindRateLimited = "rate limited"
	kindError       = "upstream's error"
	kindBroken      = "broken by upstream"
	kindInvalid     = "invalid"
	kindUpgrade     = "upgrade"
	kindHalf        = "half a body"
	kindElsewhere   = "elsewhere"
)

func stormKinds() []string {
	return []string{kindWhole, kindStream, kindLeaveStream, kindLeaveHeader, kindRateLimited, kindError, kindBroken,
		kindInvalid, kindUpgrade, kindHalf, kindElsewhere}
}

// storm sends requests of all kinds, several at a time.
type storm struct {
	*setting
	t       testing.TB
	p       *process
	never   chan struct{}
	mu      sync.Mutex
	reached map[string]chan struct{} // closed when the request with that number is upstream
}

// TestStorm sends requests most of which fail. Afterwards the proxy serves as before: nothing panicked, all resources were released, and it stops
// immediately when asked to.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := &storm{t: t, never: make(chan struct{}), reached: map[string]chan struct{}{}}
	s.setting = newSetting(t, fakeupstream.Options{Reply: s.reply})
	s.p = serve(t, "--config", s.config(t, embedded(newStore(t))+"\nlimits: {max_body: 4MiB, bytes_in_flight: 4MiB}"))
	s.send()
	s.checkUpstream()
	// Nearly the whole byte budget: it passes once every other body was released.
	sessiontest.Eventually(t, "all bodies are let go", func() error {
		text := strings.Repeat("x", 3<<20)
		return s.status(http.MethodPost, "/embeddings", kindElsewhere, `{"model":"m","input":"`+text+`"}`, http.StatusOK)
	})
	s.checkMetrics()
	s.p.terminate()
	if code := s.p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func (s *storm) send() {
	numbers := make(chan int)
	var clients sync.WaitGroup
	for range stormClients {
		clients.Go(func() {
			for n := range numbers {
				kind := stormKinds()[n%len(stormKinds())]
				if err := s.request(n, kind); err != nil {
					s.t.Errorf("request %d, %s: %v", n, kind, err)
				}
			}
		})
	}
	for n := range stormRequests {
		numbers <- n
	}
	close(numbers)
	clients.Wait()
}

// reply returns the upstream's behaviour for each kind.
func (s *storm) reply(r *fakeupstream.Request) fakeupstream.Answer {
	answer := fakeupstream.Answer{Content: "An answer of several words."}
	switch r.Header.Get("X-Kind") {
	case kindLeaveStream:
		answer.Fault = fakeupstream.Fault{Hold: s.never, HoldAfter: 2}
	case kindLeaveHeader:
		answer.Fault.HoldHeaders = s.never
		close(s.waiter(r.Header.Get("X-Number")))
	case kindRateLimited:
		return fakeupstream.RateLimited("7")
	case kindError:
		return fakeupstream.ServerError()
	case kindBroken:
		answer.Fault = fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 2}
	}
	return answer
}

func (s *storm) waiter(number string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reached[number] == nil {
		s.reached[number] = make(chan struct{})
	}
	return s.reached[number]
}

// request sends one request and checks its outcome.
func (s *storm) request(n int, kind string) error {
	switch kind {
	case kindInvalid:
		return s.status(http.MethodPost, "/chat/completions", kind, `{"model":"gpt-4o","messages":[`, http.StatusBadRequest)
	case kindElsewhere:
		return s.status(http.MethodGet, "/nothing/here", kind, "", http.StatusNotFound)
	case kindUpgrade:
		return s.status(http.MethodGet, "/responses", kind, "", http.StatusUpgradeRequired)
	case kindRateLimited:
		return s.status(http.MethodPost, "/chat/completions", kind, stormHistory(n, false), http.StatusTooManyRequests)
	case kindError:
		return s.status(http.MethodPost, "/chat/completions", kind, stormHistory(n, false), http.StatusInternalServerError)
	case kindWhole:
		return s.status(http.MethodPost, "/chat/completions", kind, stormHistory(n, false), http.StatusOK)
	case kindHalf:
		return s.half(n)
	case kindLeaveHeader:
		return s.leaveBeforeHeader(n)
	}
	return s.streamed(n, kind)
}

func stormHistory(n int, stream bool) string {
	return string(encode(map[string]any{"model": "gpt-4o", "stream": stream, "messages": []any{
		map[string]string{"role": "user", "content": fmt.Sprintf("Conversation %d. %s", n, strings.Repeat("word ", stormBody/5))},
	}}))
}

func (s *storm) exchange(ctx context.Context, method, path, kind, number, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.p.url()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Kind": {kind}, "X-Number": {number}}
	if kind == kindUpgrade {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "websocket")
	}
	return http.DefaultClient.Do(req)
}

// status sends a request, reads the answer to its end and checks the status.
func (s *storm) status(method, path, kind, body string, want int) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	resp, err := s.exchange(ctx, method, path, kind, "", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != want || want == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "7" {
		return fmt.Errorf("%s, want %d", resp.Status, want)
	}
	return nil
}

// streamed reads a stream as far as its kind requires.
func (s *storm) streamed(n int, kind string) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	resp, err := s.exchange(ctx, http.MethodPost, "/chat/completions", kind, "", stormHistory(n, true))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind == kindLeaveStream {
		_, err := resp.Body.Read(make([]byte, 1))
		return err
	}
	text, err := io.ReadAll(resp.Body)
	whole := err == nil && bytes.HasSuffix(text, []byte("data: [DONE]\n\n"))
	if whole != (kind == kindStream) {
		return fmt.Errorf("it ended with %v after %q", err, text) //nolint:errorlint // there may be none
	}
	return nil
}

func (s *storm) leaveBeforeHeader(n int) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	number := fmt.Sprint(n)
	go func() {
		select {
		case <-s.waiter(number):
			cancel()
		case <-ctx.Done():
		}
	}()
	resp, err := s.exchange(ctx, http.MethodPost, "/chat/completions", kindLeaveHeader, number, stormHistory(n, true))
	if err == nil {
		_ = resp.Body.Close()
		return fmt.Errorf("answered: %s", resp.Status)
	}
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// half sends half a body, and disconnects.
func (s *storm) half(n int) error {
	conn, err := net.Dial("tcp", s.p.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	history := stormHistory(n, false)
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(history), history[:len(history)/2])
	return err
}

// checkUpstream waits until upstream has finished every request, and checks that it noticed each client that left.
func (s *storm) checkUpstream() {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	all, err := s.Upstream.WaitFor(ctx, func(all []fakeupstream.Request) bool {
		return !slices.ContainsFunc(all, func(r fakeupstream.Request) bool { return !r.Cancelled && r.Phase != fakeupstream.PhaseDone })
	})
	ok(s.t, err)
	for _, r := range all {
		kind := r.Header.Get("X-Kind")
		if left := kind == kindLeaveStream || kind == kindLeaveHeader; r.Cancelled != left {
			s.t.Errorf("request %d, %s: cancelled %t", r.Index, kind, r.Cancelled)
		}
	}
}

func (s *storm) checkMetrics() {
	metrics := s.p.metrics()
	if !slices.Contains(metrics, "dewpoint_panics_total 0") {
		s.t.Errorf("no good word of panics in the metrics:\n%s", strings.Join(metrics, "\n"))
	}
	if strings.Contains(s.p.log.String(), `"level":"error"`) {
		s.t.Error("there are errors in the log")
	}
}
