package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// TestOneClientCannotHoldAllBytes has one client, and then twenty that make up credentials, send as much as they can without end. Others are served.
func TestOneClientCannotHoldAllBytes(t *testing.T) {
	const budget, largest = 16 << 20, 4 << 20
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.InFlight, l.Body = budget, largest }})
	known := []string{"Authorization", "Bearer " + keyMark + "known"}
	if resp, body := r.ask(hello, known...); resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %s", resp.StatusCode, body)
	}
	var all []*wire
	flood := func(key string) {
		w := r.dial()
		all = append(all, w)
		w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", chatPath, key, largest))
		_, _ = w.Write([]byte(strings.Repeat(" ", largest*3/4))) // it may be refused before its end
	}
	for range 10 {
		flood(keyMark + "attacker")
	}
	body := messages(say("user", strings.Repeat("x", 100<<10)))
	for _, header := range [][]string{known, {"Authorization", "Bearer " + keyMark + "new"}} {
		if resp, answer := r.ask(body, header...); resp.StatusCode != http.StatusOK {
			t.Errorf("%v: status %d, %s", header, resp.StatusCode, answer)
		}
	}
	for n := range 20 {
		flood(fmt.Sprint(keyMark, "bogus-", n))
	}
	if resp, answer := r.ask(body, known...); resp.StatusCode != http.StatusOK {
		t.Errorf("a known client among many strangers: status %d, %s", resp.StatusCode, answer)
	}
	held, most := r.metric(`dewpoint_bytes_held{tenant="default"}`), r.metric(`dewpoint_bytes_held_most{tenant="default"}`)
	if held == 0 || most == 0 || most >= held || held > budget*4/5 {
		t.Errorf("%v bytes are held, %v by one client", held, most)
	}
	for _, w := range all {
		w.Close()
	}
	r.wait(func() bool {
		return r.metric(`dewpoint_requests_total{code="share_exceeded",dialect="",model="",status="5xx",tenant="default"}`) > 0
	})
}

// TestSlowReaders: a client that reads its answer slowly, or not at all, holds no bytes of its request.
func TestSlowReaders(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, setup{})
	defer close(hold)
	for _, path := range []string{chatPath, "/v1//chat/completions"} {
		r.up.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{Hold: hold}})
		w := r.dial()
		t.Cleanup(func() { w.Close() })
		body := `{"stream":true,` + messages(say("user", strings.Repeat("x", 1<<20)))[1:]
		w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))
		w.begin(http.MethodPost)
		r.wait(func() bool { return r.server.InFlight() == 0 }) // the log is written next to it
	}
}

// TestSlowReadersKeepNoBodies counts what the process holds for clients that take their answers slowly: not the bodies that they sent, in
// any protocol, nor on a path that passes through.
func TestSlowReadersKeepNoBodies(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	const readers, size, most = 2, 5 << 20, 1 << 20
	hold := make(chan struct{})
	base := slowUpstream(t, hold)
	defer close(hold)
	text := func(n int) string { return fmt.Sprint(n) + strings.Repeat(" word", size/5) }
	for name, c := range map[string]struct {
		path    string
		dialect dialect.Dialect
		body    func(n int) string
	}{
		"chat":     {chatPath, nil, func(n int) string { return `{"stream":true,` + messages(say("user", text(n)))[1:] }},
		"messages": {chatPath, messagesapi.New(split.Options{}), func(n int) string { return `{"stream":true,"max_tokens":100,` + messages(say("user", text(n)))[1:] }},
		"a compaction": {chatPath, messagesapi.New(split.Options{}), func(n int) string {
			return `{"stream":true,"max_tokens":100,` + messages(say("user", text(n)),
				`{"role":"assistant","content":[{"type":"compaction","content":"Words."}]}`, say("user", "More?"))[1:]
		}},
		"responses": {chatPath, responses.New(split.Options{}), func(n int) string {
			return `{"stream":true,"store":false,"model":"gpt-4.1","input":"` + text(n) + `"}`
		}},
		"passed through": {"/v1/other", nil, text},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{base: base, dialect: c.dialect})
			before := int64(0)
			for n := range readers + 1 {
				if n == 1 { // the first one had made what is made once
					before = held()
				}
				w, sent := r.dial(), c.body(n)
				t.Cleanup(func() { w.Close() })
				w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", c.path, len(sent), sent))
				w.begin(http.MethodPost)
				r.wait(func() bool { return r.server.InFlight() == 0 })
			}
			if each := (held() - before) / readers; each > most {
				t.Errorf("a slow reader holds %d KiB, want %d at most", each>>10, most>>10)
			} else {
				t.Logf("a slow reader holds %d KiB", each>>10)
			}
		})
	}
}

// slowUpstream begins to answer everything at once, and ends no answer before hold is closed. It keeps nothing.
func slowUpstream(t *testing.T, hold <-chan struct{}) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": here\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}
