package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestSmuggledRequests frames a body in ways that two servers could read differently, and hides a second request where one of them would
// find it. Each is refused and its connection closed, or it is read as one request.
func TestSmuggledRequests(t *testing.T) {
	r := newRig(t, setup{})
	const hidden = "GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	head := "POST /v1/plain HTTP/1.1\r\nHost: x\r\n"
	chunky := head + "Transfer-Encoding: chunked\r\n\r\n"
	for name, request := range map[string]string{
		"unknown encoding":        head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"chunked, identity":       head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"identity, chunked":       head + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
		"chunked, comma":          head + "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n",
		"vertical tab":            head + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n",
		"quoted":                  head + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
		"folded encoding":         head + "Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
		"folded length":           head + "Content-Length:\r\n 4\r\n\r\nabcd",
		"header folded into TE":   head + "X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"bare CR before encoding": head + "X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"bare LF before encoding": head + "X-A: b\nTransfer-Encoding: chunked\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"length in hexadecimal":   head + "Content-Length: 0x4\r\n\r\nabcd",
		"length with a space":     head + "Content-Length: 4 4\r\n\r\nabcd",
		"length with a sign":      head + "Content-Length: +4\r\n\r\nabcd",
		"length in Arabic digits": head + "Content-Length: \u0664\r\n\r\nabcd",
		"empty length":            head + "Content-Length: \r\n\r\nabcd",
		"huge length":             head + "Content-Length: 18446744073709551620\r\n\r\nabcd",
		"space before colon":      head + "Content-Length : 4\r\n\r\nabcd",
		"tab before colon":        head + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
		"no name":                 head + ": chunked\r\n\r\n",
		"no colon":                head + "Transfer-Encoding chunked\r\n\r\n0\r\n\r\n",
		"chunk size with sign":    chunky + "+1\r\na\r\n0\r\n\r\n",
		"negative chunk":          chunky + "-1\r\na\r\n0\r\n\r\n",
		"chunk size with 0x":      chunky + "0x1\r\na\r\n0\r\n\r\n",
		"chunk size too large":    chunky + "fffffffffffffffff\r\na\r\n0\r\n\r\n",
		"chunk size that wraps":   chunky + "10000000000000001\r\na\r\n0\r\n\r\n",
		"no chunk size":           chunky + "\r\na\r\n0\r\n\r\n",
		"odd chunk size":          chunky + "1g\r\na\r\n0\r\n\r\n",
		"chunk without its end":   chunky + "1\r\nab\r\n0\r\n\r\n",
		"LF after chunk size":     chunky + "1\na\r\n0\r\n\r\n",
		"LF after chunk":          chunky + "1\r\na\n0\r\n\r\n",
		"CR in extension":         chunky + "1;a\rb\r\na\r\n0\r\n\r\n",
		"LF in extension":         chunky + "1;a\nb\r\na\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			before := len(r.up.Requests())
			w := r.dial()
			w.t = t
			w.send(request + hidden)
			resp, body := w.answer(http.MethodPost)
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("status %d, %s", resp.StatusCode, body)
			}
			w.wantEnd()
			for _, up := range r.up.Requests()[before:] {
				t.Errorf("%s %s went upstream", up.Method, up.Path)
			}
		})
	}
}

// TestChunkExtensionsAreBounded sends a chunk extension that does not end.
func TestChunkExtensionsAreBounded(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial()
	w.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;")
	for range 64 { // 1 MiB in all
		if _, err := w.Write([]byte(strings.Repeat("x", 16<<10))); err != nil {
			break // it was refused meanwhile
		}
	}
	w.CloseWrite()
	if resp, err := http.ReadResponse(w.r, nil); err == nil && resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", resp.StatusCode)
	}
	if held := r.server.InFlight(); held > 64<<10 {
		t.Errorf("%d bytes are held", held)
	}
}

// TestFramingIsBounded sends more framing than body in several ways: each is refused.
func TestFramingIsBounded(t *testing.T) {
	r := newRig(t, setup{})
	head := "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	long := strings.Repeat("x", 1<<20)
	for name, request := range map[string]string{
		"a chunk extension":     head + fmt.Sprintf("%x;a=%s\r\n%s\r\n0\r\n\r\n", len(hello), long, hello),
		"many chunk extensions": head + strings.Repeat("1;"+long[:500]+"\r\n \r\n", 1000) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hello), hello),
		"a method":              strings.Repeat("A", 10_000) + " " + chatPath + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"no token":              "GE(T /v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		w := r.dial()
		w.t = t
		go func() { _, _ = io.WriteString(w, request) }() // it may be refused before its end
		if resp, body := w.answer(http.MethodPost); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"param":null`) {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, body)
		}
		w.Close()
	}
	if n := len(r.up.Requests()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

// TestAnswersAreCleaned has upstream send control characters in its header, on which a client or a terminal might act.
func TestAnswersAreCleaned(t *testing.T) {
	for name, c := range map[string]struct{ status, header, wantStatus, wantHeader string }{
		"controls":      {"200 O\x1b[31mK", "X-A: a\x1b[2Jb\x07\x7f\tc", "200 OK", "a [2Jb  \tc"},
		"a long reason": {"200 " + strings.Repeat("x", 100<<10), "X-A: b", "200 OK", "b"},
		"a short one":   {"200 Fine by me", "X-A: b", "200 Fine by me", "b"},
	} {
		r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 "+c.status+"\r\n"+c.header+"\r\nContent-Length: 2\r\n\r\n{}")})
		w := r.dial()
		w.send("GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		resp, body := w.answer(http.MethodGet)
		refused := resp.StatusCode == http.StatusBadGateway // as net/http does with some
		if !refused && (resp.Status != c.wantStatus || resp.Header.Get("X-A") != c.wantHeader || body != "{}") {
			t.Errorf("%s: %s, %q, %q", name, resp.Status, resp.Header.Get("X-A"), body)
		}
	}
}

// TestHeaderSmuggling sends header values that a careless server would read as another header. They are refused, or arrive unchanged as one
// header.
func TestHeaderSmuggling(t *testing.T) {
	r, got := mirrored(t, setup{})
	for name, c := range map[string]struct {
		header string
		want   http.Header // nil: refused
	}{
		"NUL":                {"X-A: b\x00c", nil},
		"NUL in a name":      {"X-A\x00: b", nil},
		"bare CR":            {"X-A: b\rX-Evil: 1", nil},
		"folded":             {"X-A: b\r\n X-Evil: 1", nil},
		"folded by a tab":    {"X-A: b\r\n\tX-Evil: 1", nil},
		"space in a name":    {"X A: b", nil},
		"UTF-8 in a name":    {"X-\u00c4: b", nil},
		"two keys":           {"Authorization: Bearer " + keyMark + "1\r\nAuthorization: Bearer " + keyMark + "2", nil},
		"two keys, odd case": {"Authorization: Bearer " + keyMark + "1\r\nAUTHORIZATION: Bearer " + keyMark + "2", nil},
		"underscores":        {"X_Dewpoint_Session: a\r\nContent_Length: 3", http.Header{"X_dewpoint_session": {"a"}, "Content_length": {"3"}}},
		"our own":            {"x-dewpoint-session: a\r\nX-DEWPOINT-anything: b", http.Header{}},
		"named hop-by-hop":   {"Connection: close, X-A , authorization\r\nX-A: b\r\nAuthorization: " + keyMark + "1", http.Header{}},
		"escaped line break": {"X-A: b%0d%0aX-Evil: 1\\r\\n", http.Header{"X-A": {"b%0d%0aX-Evil: 1\\r\\n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.dial()
			w.t = t
			w.send("GET /v1/x HTTP/1.1\r\nHost: x\r\nUser-Agent: a\r\n" + c.header + "\r\n\r\n")
			resp, body := w.answer(http.MethodGet)
			if c.want == nil {
				if resp.StatusCode != http.StatusBadRequest {
					t.Errorf("status %d, %s", resp.StatusCode, body)
				}
				return
			}
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("status %d, %s", resp.StatusCode, body)
			}
			up := (<-got).header
			up.Del("User-Agent")
			if fmt.Sprint(up) != fmt.Sprint(c.want) {
				t.Errorf("upstream got %v, want %v", up, c.want)
			}
		})
	}
	select {
	case up := <-got:
		t.Errorf("%v went upstream", up.header)
	default:
	}
}

// TestAnswerSmuggling has upstream send more than one answer, or more than one header, which the client could take for the proxy's.
func TestAnswerSmuggling(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for name, answer := range map[string]string{
		"two answers":          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + evil,
		"length and encoding":  "HTTP/1.1 200 OK\r\nContent-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + evil,
		"two lengths":          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 60\r\n\r\n{}" + evil,
		"NUL":                  "HTTP/1.1 200 OK\r\nX-A: b\x00c\r\nContent-Length: 2\r\n\r\n{}",
		"bare CR":              "HTTP/1.1 200 OK\r\nX-A: b\rX-Evil: 1\r\nContent-Length: 2\r\n\r\n{}",
		"folded":               "HTTP/1.1 200 OK\r\nX-A: b\r\n X-Evil: 1\r\nContent-Length: 2\r\n\r\n{}",
		"line break in status": "HTTP/1.1 200 OK\rX-Evil: 1\r\nContent-Length: 2\r\n\r\n{}",
		"named hop-by-hop":     "HTTP/1.1 200 OK\r\nConnection: X-Evil\r\nX-Evil: 1\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{base: cannedUpstream(t, answer)})
			w := r.dial()
			w.send("GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			resp, body := w.answer(http.MethodGet)
			if resp.StatusCode != http.StatusBadGateway && body != "{}" || resp.Header.Get("X-Evil") != "" || strings.Contains(body, "evil") {
				t.Errorf("status %d, %v, %q", resp.StatusCode, resp.Header, body)
			}
			w.wantEnd()
		})
	}
}

// TestLateAnswer has upstream send another answer after an answer, before any request: the next client must not get it.
func TestLateAnswer(t *testing.T) {
	now, done := make(chan struct{}), make(chan struct{})
	r := newRig(t, setup{base: rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		<-now
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		_, _ = io.Copy(io.Discard, conn) // until the proxy closes it
		done <- struct{}{}
	})})
	for range 4 {
		resp, err := r.client.Do(r.request(guard(t), http.MethodGet, "/v1/models", ""))
		must(t, err)
		if body := drain(t, resp); resp.StatusCode != http.StatusOK || body != "{}" {
			t.Fatalf("status %d, %q", resp.StatusCode, body)
		}
		now <- struct{}{}
		select {
		case <-done:
		case <-guard(t).Done():
			t.Fatal("the proxy keeps a connection on which an answer came that it did not ask for")
		}
	}
}

// TestBytesAfterABodyAreTheNextRequest pipelines: bytes after a body are the next request, never a part of the first.
func TestBytesAfterABodyAreTheNextRequest(t *testing.T) {
	r, got := mirrored(t, setup{})
	w := r.dial()
	w.send(fmt.Sprintf("POST /v1/a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(hello), hello) +
		"GET /v1/b HTTP/1.1\r\nHost: x\r\n\r\n")
	var targets []string
	for range 2 {
		w.answer(http.MethodGet)
		targets = append(targets, (<-got).target)
	}
	if !slices.Equal(targets, []string{"/base/v9/a", "/base/v9/b"}) {
		t.Errorf("got %v", targets)
	}
}
