package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

func TestAmbiguousRequests(t *testing.T) {
	r := newRig(t, setup{})
	const smuggled = "0\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
	head := "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		request, code string
		status        int
	}{
		"length and encoding": {head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled, "ambiguous_length", 400},
		"encoding and length": {head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + smuggled, "ambiguous_length", 400},
		"identity and length": {head + "Transfer-Encoding: identity\r\nContent-Length: 4\r\n\r\n" + smuggled, "ambiguous_length", 400},
		"odd case":            {head + "CONTENT-length: 4\r\ntransfer-ENCODING: chunked\r\n\r\n" + smuggled, "ambiguous_length", 400},
		"two lengths":         {head + "Content-Length: 4\r\nContent-Length: 5\r\n\r\n" + smuggled, "malformed_request", 400},
		"equal lengths":       {head + "Content-Length: 4\r\nContent-Length: 4\r\n\r\n" + smuggled, "malformed_request", 400},
		"list of lengths":     {head + "Content-Length: 4, 4\r\n\r\n" + smuggled, "malformed_request", 400},
		"signed length":       {head + "Content-Length: +4\r\n\r\n" + smuggled, "malformed_request", 400},
		"negative length":     {head + "Content-Length: -4\r\n\r\n" + smuggled, "malformed_request", 400},
		"two encodings":       {head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled, "malformed_request", 400},
		"gzip, chunked":       {head + "Transfer-Encoding: gzip, chunked\r\n\r\n" + smuggled, "malformed_request", 400},
		"space before colon":  {head + "Transfer-Encoding : chunked\r\nContent-Length: 4\r\n\r\n" + smuggled, "malformed_request", 400},
		"chunked in 1.0":      {strings.Replace(head, "1.1", "1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n" + smuggled, "malformed_request", 400},
		"two hosts":           {head + "Host: y\r\n\r\n", "malformed_request", 400},
		"zero byte":           {head + "X-A: b\x00c\r\n\r\n", "malformed_request", 400},
		"no HTTP":             {"\x16\x03\x01\x02\x00\x01\r\n\r\n", "malformed_request", 400},
		"trace":               {"TRACE /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "method_not_allowed", 405},
		"connect":             {"CONNECT /x HTTP/1.1\r\nHost: x\r\n\r\n", "method_not_allowed", 405},
	} {
		t.Run(name, func(t *testing.T) {
			w := r.dial()
			w.t = t
			w.send(c.request)
			resp, body := w.answer(http.MethodPost)
			wantError(t, resp, body, c.status, c.code)
			w.wantEnd()
		})
	}
	for _, request := range []string{
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
		"GET /v1/models HTTP/2.0\r\nHost: x\r\n\r\n",
	} {
		w := r.dial()
		w.send(request)
		if resp, body := w.answer(http.MethodGet); resp.StatusCode < 400 || resp.StatusCode > 505 || !strings.Contains(body, `"code"`) {
			t.Errorf("%q: status %d, %s", request, resp.StatusCode, body)
		}
		w.wantEnd()
	}
	if n := len(r.up.Requests()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

func TestWebSocket(t *testing.T) {
	r := newRig(t, setup{})
	for _, name := range []string{"websocket", "WebSocket"} {
		w := r.dial()
		w.send("GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + name + "\r\n" +
			"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n")
		resp, body := w.answer(http.MethodGet)
		wantError(t, resp, body, 426, "websocket_unsupported")
		if resp.Header.Get("Upgrade") == "" {
			t.Error("no Upgrade header: RFC 9110 wants one")
		}
		w.wantEnd()
	}
}

func TestChunkedRequest(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial()
	long := messages(say("user", strings.Repeat("long ", 50_000)))
	for size, body := range map[int]string{1: hello, 7: hello, 1000: long, 1 << 20: long} {
		w.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strings.Replace(chunked(body, size), "\r\n", ";ext=1\r\n", 1))
		if resp, answer := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
			t.Errorf("chunks of %d: status %d, %s", size, resp.StatusCode, answer)
		}
		all := r.up.Requests()
		if got := all[len(all)-1]; string(got.Body) != body || got.Header.Get("Transfer-Encoding") != "" {
			t.Errorf("chunks of %d: %d bytes arrived, want %d", size, len(got.Body), len(body))
		}
	}
}

func TestExpectContinue(t *testing.T) {
	r := newRig(t, setup{})
	w := r.dial()
	for range 2 {
		w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
			chatPath, len(hello)))
		if line, err := w.r.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		_, err := w.r.ReadString('\n')
		must(t, err)
		w.send(hello)
		if resp, body := w.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
			t.Errorf("status %d, %s", resp.StatusCode, body)
		}
	}
}

func TestHeaderTooLarge(t *testing.T) {
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.Header = 4 << 10 }})
	w := r.dial()
	w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 5<<10) + "\r\n\r\n")
	resp, body := w.answer(http.MethodGet)
	wantError(t, resp, body, 431, "header_too_large")
	w = r.dial()
	w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 3<<10) + "\r\n\r\n")
	if resp, _ := w.answer(http.MethodGet); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestBodyTooLarge(t *testing.T) {
	const limit = 200 << 10
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.Body = limit }})
	fits := messages(say("user", strings.Repeat("x", limit-len(messages(say("user", ""))))))
	if resp, body := r.ask(fits); resp.StatusCode != http.StatusOK || len(fits) != limit {
		t.Errorf("%d bytes: status %d, %s", len(fits), resp.StatusCode, body)
	}
	for _, size := range []int{limit + 1, 2 * limit, 3 * limit} {
		body := fits + strings.Repeat(" ", size-limit)
		resp, answer := r.ask(body)
		wantError(t, resp, answer, 413, "request_too_large")
		w := r.dial()
		w.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, 10_000))
		resp, answer = w.answer(http.MethodPost)
		wantError(t, resp, answer, 413, "request_too_large")
	}
	w := r.dial()
	w.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + strings.Repeat(" ", 8<<10))
	resp, answer := w.answer(http.MethodPost)
	wantError(t, resp, answer, 413, "request_too_large")
	if n := len(r.up.Requests()); n != 1 {
		t.Errorf("%d requests went upstream, want 1", n)
	}
}

func TestBytesInFlight(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.InFlight = 160 << 10 }})
	r.up.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: hold}})
	first := r.dial()
	first.post(messages(say("user", strings.Repeat("x", 60<<10)))) // takes 64 KiB
	_, err := r.up.Wait(guard(t), 1)
	must(t, err)
	for _, size := range []int{100 << 10, 4 << 20} {
		resp, body := r.ask(messages(say("user", strings.Repeat("x", size))))
		wantError(t, resp, body, 503, "share_exceeded")
		if resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if resp, body := r.ask(hello); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, %s", resp.StatusCode, body)
	}
	close(hold)
	first.answer(http.MethodPost)
	first.post(messages(say("user", strings.Repeat("x", 60<<10))))
	if resp, body := first.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: status %d, %s", resp.StatusCode, body)
	}
}

// TestDeclaredLengthAllocatesNothing has many clients that declare large bodies and send little.
func TestDeclaredLengthAllocatesNothing(t *testing.T) {
	r := newRig(t, setup{})
	const clients = 50
	var all []*wire
	for i := range clients {
		w := r.dial()
		w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", chatPath, 60<<20))
		if i%2 == 0 {
			w.send(strings.Repeat(" ", 9<<10))
		}
		all = append(all, w)
	}
	if resp, body := r.ask(hello); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, %s", resp.StatusCode, body)
	}
	if held := r.server.InFlight(); held > (clients+1)*(16<<10) {
		t.Errorf("%d bytes are held", held)
	}
	for _, w := range all {
		w.Close()
	}
}

// TestSlowClients has clients that pause for too long at every point of a request.
func TestSlowClients(t *testing.T) {
	r := newRig(t, setup{limits: func(l *proxy.Limits) { l.HeaderWait, l.BodyIdle = 100*time.Millisecond, 100*time.Millisecond }})
	head := "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\n"
	for _, part := range []string{
		"POS", head, head + "Content-Length: 100\r\n\r\n{", head + "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 10_000),
		head + "Transfer-Encoding: chunked\r\n\r\n", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"m",
	} {
		w := r.dial()
		w.send(part)
		resp, body := w.answer(http.MethodPost)
		wantError(t, resp, body, 408, "request_timeout")
		w.wantEnd()
	}
}
