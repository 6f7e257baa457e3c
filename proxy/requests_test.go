package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// seen is a request as upstream received it.
type seen struct {
	method, target, host, body string
	header                     http.Header
	length                     int64
}

// mirror is an upstream that passes on the requests that it receives. It returns the base URL.
func mirror(t *testing.T) (string, <-chan seen) {
	t.Helper()
	got := make(chan seen, 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Host, string(body), r.Header.Clone(), r.ContentLength}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL + "/base/v9", got
}

func mirrored(t *testing.T, s setup) (*rig, <-chan seen) {
	t.Helper()
	var got <-chan seen
	s.base, got = mirror(t)
	return newRig(t, s), got
}

func TestHeadersGoUpstream(t *testing.T) {
	r, got := mirrored(t, setup{})
	w := r.dial()
	w.send("POST " + chatPath + " HTTP/1.1\r\nHost: proxy.example\r\nContent-Type: application/json; charset=utf-8\r\n" +
		"User-Agent: agent/1\r\nAuthorization: Bearer " + keyMark + "client\r\nX-Api-Key: " + keyMark + "other\r\n" +
		"x-many: 1\r\nX-Many: 2\r\nX-many: 3, 4\r\nOpenai-Beta: x=y\r\nIdempotency-Key: k\r\nTraceparent: 00-a-b-01\r\n" +
		"Cookie: a=1; b=2\r\nX-Empty:\r\nX-Utf8: h\u00e9\r\nX-Session-Id: s1\r\nAccept-Encoding: gzip, br\r\nAccept: text/event-stream\r\n" +
		"X-Dewpoint-Session: mine\r\nx-dewpoint-condense: off\r\n" +
		"Connection: keep-alive, X-Named\r\nX-Named: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: Basic x\r\n" +
		"Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hello), hello))
	w.answer(http.MethodPost)
	up := <-got
	want := http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"agent/1"},
		"Authorization": {"Bearer " + keyMark + "client"}, "X-Api-Key": {keyMark + "other"},
		"X-Many": {"1", "2", "3, 4"}, "Openai-Beta": {"x=y"}, "Idempotency-Key": {"k"}, "Traceparent": {"00-a-b-01"},
		"Cookie": {"a=1; b=2"}, "X-Empty": {""}, "X-Utf8": {"hé"}, "X-Session-Id": {"s1"}, "Accept": {"text/event-stream"},
		"Accept-Encoding": {"identity"}, // the answer is read along
		"Content-Length":  {fmt.Sprint(len(hello))},
	}
	for name := range want {
		if !slices.Equal(up.header[name], want[name]) {
			t.Errorf("%s: got %q, want %q", name, up.header[name], want[name])
		}
	}
	for name, values := range up.header {
		if want[name] == nil {
			t.Errorf("%s: %q was not wanted", name, values)
		}
	}
	if up.body != hello || strings.Contains(up.host, "proxy.example") {
		t.Errorf("host %s, body %s", up.host, up.body)
	}
}

func TestNothingIsAdded(t *testing.T) {
	r, got := mirrored(t, setup{})
	w := r.dial()
	w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
	w.answer(http.MethodGet)
	if up := <-got; len(up.header) != 0 || up.length != 0 {
		t.Errorf("header %v, length %d", up.header, up.length)
	}
}

func TestUpstreamKeyReplacesTheClients(t *testing.T) {
	r, got := mirrored(t, setup{tenants: one(func(tenant *proxy.Tenant) { tenant.Upstream.APIKey = keyMark + "upstream" })})
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
		for _, path := range []string{chatPath, "/v1/embeddings"} {
			resp, err := r.client.Do(r.request(guard(t), http.MethodPost, path, hello, name, "Bearer "+keyMark+"client"))
			must(t, err)
			drain(t, resp)
			up := <-got
			if fmt.Sprint(up.header["Authorization"]) != "[Bearer "+keyMark+"upstream]" || strings.Contains(fmt.Sprint(up.header), keyMark+"client") {
				t.Errorf("%s of %s: header %v", path, name, up.header)
			}
		}
	}
}

func TestPaths(t *testing.T) {
	r, got := mirrored(t, setup{})
	w := r.dial()
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/v1/models", "/base/v9/models"},
		{"GET", "/models", "/base/v9/models"},
		{"GET", "/v1/models/gpt-4o", "/base/v9/models/gpt-4o"},
		{"GET", "/v1/models/org%2Fname", "/base/v9/models/org%2Fname"},
		{"GET", "/v1/models/a..b", "/base/v9/models/a..b"},
		{"GET", "/v1/models/v4%2e1", "/base/v9/models/v4%2e1"},
		{"GET", "/v1/x%20y%C3%A9/%7e", "/base/v9/x%20y%C3%A9/%7e"},
		{"GET", "/v1//double//", "/base/v9//double//"},
		{"GET", "/v1", "/base/v9"},
		{"GET", "/v1/", "/base/v9/"},
		{"GET", "/", "/base/v9/"},
		{"GET", "/v10/x", "/base/v9/v10/x"},
		{"GET", "/v1beta/models", "/base/v1beta/models"}, // of Gemini's API
		{"GET", "/v1x/models", "/base/v9/v1x/models"},
		{"GET", "/v1/files?limit=5&after=a%2Fb&x=..%2f&y", "/base/v9/files?limit=5&after=a%2Fb&x=..%2f&y"},
		{"GET", "/v1/files?", "/base/v9/files"},
		{"GET", "/v1/x;a=1,2:3@!$&'()*+=", "/base/v9/x;a=1,2:3@!$&'()*+="},
		{"GET", "http://evil.example/v1/models?x=1", "/base/v9/models?x=1"},
		{"GET", "http://evil.example", "/base/v9/"},
		{"GET", "https://evil.example:8443/models", "/base/v9/models"},
		{"DELETE", "/v1/files/1", "/base/v9/files/1"},
		{"OPTIONS", "/v1/chat/completions", "/base/v9/chat/completions"},
		{"PATCH", "/v1/x", "/base/v9/x"},
		{"HEAD", "/v1/models", "/base/v9/models"},
	} {
		w.send(c.method + " " + c.target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp, body := w.answer(c.method); resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s: status %d, %s", c.method, c.target, resp.StatusCode, body)
			continue
		}
		if up := <-got; up.method != c.method || up.target != c.want || strings.Contains(up.host, "evil") {
			t.Errorf("%s %s: got %s %s at %s, want %s", c.method, c.target, up.method, up.target, up.host, c.want)
		}
	}
}

func TestPathsThatClimb(t *testing.T) {
	r, got := mirrored(t, setup{})
	for _, target := range []string{
		"/..", "/v1/..", "/v1/../admin", "/v1/./x", "/v1/%2e%2e/admin", "/v1/%2E./admin", "/v1/.%2e/x", "/v1/a/../../../x",
		"/v1/..%2fadmin", "/v1/a%2f..%2f..%2fadmin", "/v1/..%5cadmin", "/v1/..\\admin", "/v1/..;/admin", "/v1/x/..",
		"http://evil.example/../x",
	} {
		w := r.dial()
		w.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, body := w.answer(http.MethodGet)
		wantError(t, resp, body, 400, "invalid_path")
		w.Close()
	}
	for _, target := range []string{"*", "/v1/%zz", "/v1/%", "x", "@evil.example/x", ":80/x"} {
		w := r.dial()
		w.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp, body := w.answer(http.MethodGet); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d, %s", target, resp.StatusCode, body)
		}
		w.Close()
	}
	select {
	case up := <-got:
		t.Errorf("%s went upstream", up.target)
	default:
	}
}

// TestBodies sends bodies on other paths, which are passed through.
func TestBodies(t *testing.T) {
	r, got := mirrored(t, setup{})
	binary := make([]byte, 300<<10)
	for i := range binary {
		binary[i] = byte(i * i >> 3)
	}
	for name, body := range map[string]string{
		"binary": string(binary), "not JSON": "{", "empty": "", "multipart": "--b\r\nContent-Disposition: form-data; name=x\r\n\r\n\xff\r\n--b--\r\n",
	} {
		for _, method := range []string{"POST", "PUT", "DELETE", "GET"} {
			resp, err := r.client.Do(r.request(guard(t), method, "/v1/files", body))
			must(t, err)
			drain(t, resp)
			if up := <-got; up.body != body || up.method != method || up.length != int64(len(body)) {
				t.Errorf("%s by %s: got %s with %d bytes", name, method, up.method, len(up.body))
			}
		}
	}
}

func TestMultipartIsNotParsed(t *testing.T) {
	r, got := mirrored(t, setup{})
	const body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ndata\r\n--b--\r\n"
	w := r.dial()
	w.send(fmt.Sprintf("POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body))
	w.answer(http.MethodPost)
	if up := <-got; up.body != body {
		t.Errorf("got %q", up.body)
	}
}

// TestBodyIsHeldUntilTheTransportClosesIt has an upstream that answers while the body is still being sent. The bytes must not change until the transport has closed
// them, even after the client has its whole answer.
func TestBodyIsHeldUntilTheTransportClosesIt(t *testing.T) {
	transport := &early{rest: make(chan io.ReadCloser, 1)}
	r := newRig(t, setup{transport: transport, base: "http://upstream.invalid/v1"})
	first := messages(say("user", strings.Repeat("a", 100<<10)))
	w := r.dial()
	w.post(first)
	w.answer(http.MethodPost)
	w.post(messages(say("user", strings.Repeat("b", 100<<10)))) // its answer says that the first request is over
	w.answer(http.MethodPost)
	rest := <-transport.rest
	got, err := io.ReadAll(rest)
	must(t, err)
	if string(got) != first[10:] {
		t.Errorf("%d bytes of the body were not what the client sent", len(first))
	}
	if r.server.InFlight() == 0 {
		t.Error("the body was given back before the transport let go of it")
	}
	must(t, rest.Close())
	if _, err := rest.Read(make([]byte, 1)); err == nil {
		t.Error("a closed body can be read")
	}
}

// TestBodyCanBeSentAgain has a transport that sends a request again, as one does when a kept connection turns out to be closed.
func TestBodyCanBeSentAgain(t *testing.T) {
	got := make(chan string, 1)
	r := newRig(t, setup{base: "http://upstream.invalid/v1", transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		_, _ = io.ReadFull(r.Body, make([]byte, 5))
		r.Body.Close()
		again, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		defer again.Close()
		body, err := io.ReadAll(again)
		got <- string(body)
		return nil, err
	})})
	resp, body := r.ask(hello)
	wantError(t, resp, body, 502, "upstream_unreachable")
	if body := <-got; body != hello {
		t.Errorf("got %q", body)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f(r)
	if resp == nil && err == nil {
		err = errors.New("no answer")
	}
	return resp, err
}

// early is a transport that answers its first request after ten bytes of the body, and keeps the rest.
type early struct {
	rest  chan io.ReadCloser
	count int
}

func (e *early) RoundTrip(r *http.Request) (*http.Response, error) {
	if e.count++; e.count == 1 {
		_, _ = io.ReadFull(r.Body, make([]byte, 10))
		e.rest <- r.Body
	} else {
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: 200, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: 2,
		Body: io.NopCloser(strings.NewReader("{}")), Request: r,
	}, nil
}
