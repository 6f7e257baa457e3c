package proxy_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// readEvent reads a stream to the end of its next event.
func readEvent(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		must(t, err)
		if b.WriteString(line); line == "\n" {
			return b.String()
		}
	}
}

// TestEachChunkIsRelayedAtOnce sends the next event only when the client has the one before.
func TestEachChunkIsRelayedAtOnce(t *testing.T) {
	quick.Skip(t)
	drip := make(chan struct{})
	r := newRig(t, setup{})
	r.up.Script(fakeupstream.Answer{Content: "one two three", ChunkRunes: 4, Fault: fakeupstream.Fault{Drip: drip}})
	resp := r.post(helloing) // the header comes before the first event
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	for range 6 { // the role, four pieces, the finish
		drip <- struct{}{}
		if got := readEvent(t, stream); !strings.HasPrefix(got, "data: {") {
			t.Fatalf("got %q", got)
		}
	}
	drip <- struct{}{}
	if rest, err := io.ReadAll(stream); string(rest) != "data: [DONE]\n\n" || err != nil {
		t.Errorf("at the end %q, %v", rest, err)
	}
}

// TestOpeningsAreNotHeldBackForLong: the events that open a stream arrive although nothing follows until the client has them.
func TestOpeningsAreNotHeldBackForLong(t *testing.T) {
	const end = "data: {\"type\":\"message_stop\"}\n\ndata: [DONE]\n\n" // of any protocol that has one
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		opening string
	}{
		"chat":      {chat.New(chat.Options{}), `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`},
		"messages":  {messagesapi.New(split.Options{}), `data: {"type":"message_start","message":{"content":[]}}`},
		"responses": {responses.New(split.Options{}), `data: {"type":"response.created"}`},
		"comment":   {chat.New(chat.Options{}), ": waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan struct{})
			r := newRig(t, setup{dialect: c.dialect, base: rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				first := c.opening + "\n\n"
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(first), first)
				select {
				case <-got:
				case <-guard(t).Done():
				}
				_, _ = io.WriteString(conn, chunked(end, 50))
			})})
			body := `{"stream":true,"max_tokens":100,"model":"gpt-4.1","input":"Hello","messages":[` + say("user", "Hello") + `]}`
			resp := r.post(body)
			defer resp.Body.Close()
			stream := bufio.NewReader(resp.Body)
			if event := readEvent(t, stream); event != c.opening+"\n\n" {
				t.Errorf("got %q", event)
			}
			close(got)
			if rest := drainAll(t, stream); rest != end {
				t.Errorf("then %q", rest)
			}
		})
	}
}

// wantBroken checks that a body does not end as if it were complete.
func wantBroken(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the body ended with %v: %q", err, body)
	}
	return string(body)
}

func TestBrokenAnswers(t *testing.T) {
	const header = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	long := strings.Repeat(" ", 8<<10) // more than is buffered on the way
	for name, answer := range map[string]string{
		"no last chunk":        header + strings.TrimSuffix(chunked("data: "+chunkOne+"\n\n", 50), "0\r\n\r\n"),
		"half a chunk":         header + "ff\r\ndata: " + chunkOne[:40],
		"no chunk":             header + "zz\r\n",
		"closed, no mark":      "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + chunkOne + "\n\n",
		"whole, short of size": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n" + long,
		"gzip cut":             strings.Replace(header, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1) + chunked(packed("data: " + chunkOne)[:40], 50),
		"no brotli":            strings.Replace(header, "\r\n\r\n", "\r\nContent-Encoding: br\r\n\r\n", 1) + chunked("data: "+chunkOne+"\n\n", 50),
		"whole, chunks cut":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{base: cannedUpstream(t, answer)})
			r.atEnd(`dewpoint_requests_total{code="upstream_broken",dialect="chat",model="gpt-4o",status="2xx",tenant="default"}`, 1)
			r.atEnd("dewpoint_client_gone_total", 0)
			wantBroken(t, r.post(helloing))
		})
	}
}

// TestCleanEnds: a stream that ends as its framing says is relayed so, whatever it lacks. The log and the metrics say that it was not finished.
func TestCleanEnds(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	asked := map[string]string{"chat": helloing, "messages": helloing, "responses": `{"model":"gpt-4o","stream":true,"input":"hi"}`}
	for name, d := range map[string]dialect.Dialect{
		"chat": chat.New(split.Options{}), "messages": messagesapi.New(split.Options{}), "responses": responses.New(split.Options{}),
	} {
		for what, body := range map[string]string{
			"no mark, no finish": "data: " + chunkOne + "\n\n", "half an event": "data: " + chunkOne + "\n\ndata: {\"choi",
			"half a mark": "data: " + chunkOne + "\n\ndata: [DON", "nothing": "",
		} {
			for framing, answer := range map[string]string{
				"chunked":   head + "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 50),
				"of a size": fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body),
			} {
				t.Run(strings.Join([]string{name, what, framing}, "/"), func(t *testing.T) {
					t.Parallel()
					r := newRig(t, setup{base: cannedUpstream(t, answer), dialect: d})
					r.atEnd(`dewpoint_requests_total{code="upstream_unfinished",dialect="`+name+`",model="gpt-4o",status="2xx",tenant="default"}`, 1)
					if resp, got := r.ask(asked[name]); resp.StatusCode != http.StatusOK || got != body {
						t.Errorf("%s: %q", resp.Status, got)
					}
				})
			}
		}
	}
}

// TestWronglyLabelledCodings: deflate without its header is read, and so is a body that is not in the coding which its header names.
func TestWronglyLabelledCodings(t *testing.T) {
	text := "data: " + chunkOne + "\n\ndata: [DONE]\n\n"
	var raw bytes.Buffer
	z, err := flate.NewWriter(&raw, flate.DefaultCompression)
	must(t, err)
	_, err = io.WriteString(z, text)
	must(t, err)
	must(t, z.Close())
	for coding, body := range map[string]string{"deflate": raw.String(), "gzip": text, "x-gzip": packed(text)} {
		r := newRig(t, setup{base: cannedUpstream(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: %s\r\n"+
			"Content-Length: %d\r\n\r\n%s", coding, len(body), body))})
		if resp, got := r.ask(helloing); got != text || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %q", coding, got)
		}
	}
}

// packed returns text with gzip.
func packed(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text)) // a buffer takes all
	_ = z.Close()
	return out.String()
}

// TestStreamsThatEndWithAnError: a stream that ends with an error in place of its end mark is whole.
func TestStreamsThatEndWithAnError(t *testing.T) {
	body := "data: " + chunkOne + "\n\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":502}}\n\n"
	for name, answer := range map[string]string{
		"chunked":   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, 50),
		"of a size": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{base: cannedUpstream(t, answer)})
			r.atEnd(`dewpoint_requests_total{code="upstream_5xx",dialect="chat",model="gpt-4o",status="2xx",tenant="default"}`, 1)
			if resp, got := r.ask(helloing); resp.StatusCode != http.StatusOK || got != body {
				t.Errorf("%s: %q", resp.Status, got)
			}
		})
	}
}

// TestStreamOfASize: events are passed on at once, also if upstream has said how many bytes there will be.
func TestStreamOfASize(t *testing.T) {
	const first, rest = "data: " + chunkOne + "\n\n", "data: [DONE]\n\n"
	got := make(chan struct{})
	r := newRig(t, setup{base: rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(first+rest), first)
		select {
		case <-got:
		case <-guard(t).Done():
		}
		_, _ = io.WriteString(conn, rest)
	})})
	resp := r.post(helloing)
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	if event := readEvent(t, stream); event != first {
		t.Errorf("got %q", event)
	}
	close(got)
	if end := drainAll(t, stream); end != rest {
		t.Errorf("then %q", end)
	}
}

// TestHeadersNeedNotBeUTF8: other bytes in upstream's header and reason phrase are passed on as they are.
func TestHeadersNeedNotBeUTF8(t *testing.T) {
	r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 200 Sch\xf6n\r\nX-Latin: caf\xe9\r\nContent-Length: 2\r\n\r\n{}")})
	resp, _ := r.ask(hello)
	if got := resp.Header.Get("X-Latin"); got != "caf\xe9" || resp.Status != "200 Sch\xf6n" {
		t.Errorf("%q, %q", resp.Status, got)
	}
}

func TestFaultsMidStream(t *testing.T) {
	for name, how := range map[string]fakeupstream.Break{"close": fakeupstream.BreakClose, "reset": fakeupstream.BreakReset} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			r.up.Script(fakeupstream.Answer{Content: "one two three", Fault: fakeupstream.Fault{Break: how, BreakAfter: 2}})
			if got := wantBroken(t, r.post(helloing)); strings.Contains(got, "[DONE]") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestBrokenPassThrough: an answer on a path that is passed through breaks off.
func TestBrokenPassThrough(t *testing.T) {
	r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")})
	resp, err := r.client.Do(r.request(guard(t), http.MethodGet, "/v1/files/1/content", ""))
	must(t, err)
	if got := wantBroken(t, resp); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestUpstreamErrors(t *testing.T) {
	quick.Skip(t)
	closed := func(*testing.T) string { return "http://127.0.0.1:1/v1" } // another process may take a port that was free
	silent := func(t *testing.T) string {
		return rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
			_, _ = io.Copy(io.Discard, conn) // until the proxy gives up
		})
	}
	noHTTP := func(t *testing.T) string { return cannedUpstream(t, "SSH-2.0-x\r\n") }
	for _, c := range []struct {
		name   string
		base   func(*testing.T) string
		status int
		code   string
	}{
		{"down", closed, 502, "upstream_unreachable"},
		{"no such name", func(*testing.T) string { return "http://upstream.invalid/v1" }, 502, "upstream_unreachable"},
		{"silent", silent, 504, "upstream_timeout"},
		{"hangs up", func(t *testing.T) string { return cannedUpstream(t, "") }, 502, "upstream_unreachable"},
		{"no HTTP", noHTTP, 502, "upstream_unreachable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := c.base(t)
			timeout := patience
			if c.code == "upstream_timeout" {
				timeout = time.Second
			}
			transport := proxy.NewTransport(0, dial.Guard{})
			t.Cleanup(transport.CloseIdleConnections)
			r := newRig(t, setup{base: base, transport: transport, limits: func(l *proxy.Limits) { l.AnswerWait = timeout }})
			resp, body := r.ask(hello)
			wantError(t, resp, body, c.status, c.code)
			if strings.Contains(body, "127.0.0.1") || strings.Contains(body, "upstream.invalid") {
				t.Errorf("internals in %s", body)
			}
			if strings.Contains(body, "was not valid HTTP") != (c.name == "no HTTP") {
				t.Errorf("told %s", body)
			}
		})
	}
}

func TestResetBeforeHeader(t *testing.T) {
	r := newRig(t, setup{})
	r.up.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: -1}})
	resp, body := r.ask(hello)
	wantError(t, resp, body, 502, "upstream_unreachable")
}

func TestSilentStreamEnds(t *testing.T) {
	quick.Skip(t)
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.StreamIdle = time.Second }})
	r.up.Script(fakeupstream.Answer{Content: "one two", Fault: fakeupstream.Fault{Hold: make(chan struct{}), HoldAfter: 2}})
	wantBroken(t, r.post(helloing))
	_, err := r.up.WaitCancelled(guard(t), 1)
	must(t, err)
}

func TestLimitOfTheWholeAnswer(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	hold := make(chan struct{})
	r := newRig(t, setup{
		tenants: one(func(tenant *proxy.Tenant) { tenant.Upstream.Timeout = time.Second }),
		upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) fakeupstream.Answer {
			if req.Stream {
				return fakeupstream.Answer{Content: "one two", Fault: fakeupstream.Fault{Hold: hold, HoldAfter: 1}}
			}
			return fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: hold}}
		}},
	})
	resp, body := r.ask(hello)
	wantError(t, resp, body, 504, "upstream_timeout")
	wantBroken(t, r.post(helloing))
}

// TestEventBesideHalfOfTheNext: events arrive with the first part of the next one in the same packet. Each goes to the client at once. An
// event that arrives with half of the next chunk waits for the rest of that chunk (ADR 19).
func TestEventBesideHalfOfTheNext(t *testing.T) {
	event := func(i int) string { return fmt.Sprintf("data: {\"event\":%d}\n\n", i) }
	framed := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
	cut := func(s string) [2]string { return [2]string{s[:len(s)/2], s[len(s)/2:]} }
	first, second := event(1), cut(event(2))
	for name, parts := range map[string][2]string{
		"each chunk whole":         {framed(first + second[0]), framed(second[1])},
		"half the line of a chunk": {framed(first) + "1", "3\r\n" + event(2) + "\r\n"},
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				got := make(chan struct{})
				play := func(conn net.Conn, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+parts[0])
					select {
					case <-got:
					case <-guard(t).Done():
					}
					_, _ = io.WriteString(conn, parts[1]+chunked("data: [DONE]\n\n", 50))
				}
				r := newRig(t, streaming(t, scheme, play))
				resp := r.post(helloing)
				defer resp.Body.Close()
				stream := bufio.NewReader(resp.Body)
				if e := readEvent(t, stream); e != first {
					t.Errorf("got %q", e)
				}
				close(got)
				if e := readEvent(t, stream); e != event(2) {
					t.Errorf("then %q", e)
				}
				if rest, err := io.ReadAll(stream); !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || err != nil {
					t.Errorf("at the end %q, %v", rest, err)
				}
			})
		}
	}
}

// streaming is a rig in front of an upstream that writes bytes, in the clear or over TLS.
func streaming(t *testing.T, scheme string, play func(net.Conn, *http.Request)) setup {
	if scheme == "http" {
		return setup{base: rawUpstream(t, func(conn *net.TCPConn, r *http.Request) { play(conn, r) })}
	}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		play(conn, r)
	}))
	up.StartTLS()
	t.Cleanup(up.Close)
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	transport := proxy.NewTransportTo(roots)
	t.Cleanup(transport.CloseIdleConnections)
	return setup{base: up.URL + "/v1", transport: transport}
}

// TestOldClients: an HTTP/1.0 client, which cannot read chunks, gets an answer that ends with its connection, whether or not it waits for a
// summary. If upstream breaks off, the connection is reset.
func TestOldClients(t *testing.T) {
	hold := make(chan struct{})
	for name, c := range map[string]struct {
		rig       *rig
		body      string
		begun     func(w *wire)
		wantReset bool
	}{
		"at once": {rig: newRig(t, setup{}), body: helloing},
		"after a summary": {rig: waits(t, hold, "", fakeupstream.Answer{Content: "Ahoy."}), body: streamOf(11), begun: func(w *wire) {
			if got := readEvent(t, w.r); got != comment {
				t.Errorf("got %q", got)
			}
			close(hold)
		}},
		"broken": {rig: newRig(t, setup{base: cannedUpstream(t, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: "+chunkOne+"\n\n")}),
			body: helloing, wantReset: true},
	} {
		w := c.rig.dial()
		w.send(fmt.Sprintf("POST %s HTTP/1.0\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s",
			chatPath, len(c.body), c.body))
		resp := w.begin(http.MethodPost)
		if len(resp.TransferEncoding) > 0 || !resp.Close || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") == "" {
			t.Fatalf("%s: %+v", name, resp)
		}
		if c.begun != nil {
			c.begun(w)
		}
		answer, err := io.ReadAll(w.r)
		if reset := errors.Is(err, syscall.ECONNRESET); reset != c.wantReset || !reset && !strings.HasSuffix(string(answer), "data: [DONE]\n\n") {
			t.Errorf("%s: %v, %q", name, err, answer)
		}
		c.rig.atEnd("dewpoint_client_gone_total", 0)
	}
}
