package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	chunkOne    = `{"id":"c","object":"chat.completion.chunk","x_unknown":{"a":[1,2]},"choices":[{"index":0,"delta":{"role":"assistant","content":"Hé","x":null},"finish_reason":null}]}`
	chunkFinish = `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	whole       = `{"id":"c","object":"chat.completion","x_unknown":1.0e2,"choices":[{"index":0,"message":{"role":"assistant","content":"\u0048i"},"finish_reason":"stop"}]}`
)

// streams lists ways to write a stream that ends as it should.
var streams = map[string]string{
	"plain":          "data: " + chunkOne + "\n\ndata: " + chunkFinish + "\n\ndata: [DONE]\n\n",
	"crlf":           "data: " + chunkOne + "\r\n\r\ndata: " + chunkFinish + "\r\n\r\ndata: [DONE]\r\n\r\n",
	"comments":       ": OPENROUTER PROCESSING\n\n: keep-alive\n\ndata: " + chunkOne + "\n\n:\n\ndata: [DONE]\n\n",
	"no space":       "data:" + chunkOne + "\n\ndata:[DONE]\n\n",
	"other fields":   "\ufeffid: 7\nevent: message\nretry: 10\ndata: " + chunkOne + "\n\nevent: x\ndata: [DONE]\n\n",
	"no last line":   "data: " + chunkOne + "\n\ndata: [DONE]",
	"after the mark": "data: " + chunkOne + "\n\ndata: [DONE]\n\n: bye\n\n",
	"no mark":        "data: " + chunkOne + "\n\ndata: " + chunkFinish + "\n\n",
	"not json":       "data: {\"choices\":[{\"delta\"\n\ndata: [DONE]\n\n",
	"error event":    "data: {\"error\":{\"message\":\"overloaded\"}}\n\ndata: [DONE]\n\n",
	"empty":          "data: [DONE]\n\n",
}

func TestStreamsArriveUnchanged(t *testing.T) {
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"+
				"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+chunked(stream, 7))})
			resp, got := r.ask(helloing)
			if got != stream || resp.StatusCode != http.StatusOK {
				t.Errorf("status %d\ngot  %q\nwant %q", resp.StatusCode, got, stream)
			}
			if got := resp.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
		})
	}
}

// canned is an upstream answer: header lines, then the body.
type canned struct {
	name, status string
	header       []string
	body         string
}

var answers = []canned{
	{"whole", "200 OK", []string{"Content-Type: application/json"}, whole},
	{"no content type", "200 OK", nil, whole},
	{"no body", "204 No Content", nil, ""},
	{"created", "201 Created", []string{"Location: /v1/x/1"}, `{"id":1}`},
	{"redirect", "307 Temporary Redirect", []string{"Location: https://elsewhere.example/v1/x"}, "moved"},
	{"bad request", "400 Bad Request", []string{"Content-Type: application/json"},
		`{"error":{"message":"context","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	{"unauthorised", "401 Unauthorized", []string{"WWW-Authenticate: Bearer realm=\"x\""}, `{"error":{}}`},
	{"rate limited", "429 Too Many Requests", []string{"Retry-After: 7", "Retry-After-Ms: 7000",
		"X-Ratelimit-Remaining-Tokens: 0", "X-Ratelimit-Reset-Tokens: 6m0s"}, `{"error":{"code":"rate_limit_exceeded"}}`},
	{"gateway page", "502 Bad Gateway", []string{"Content-Type: text/html"}, "<html>\r\n<h1>502</h1></html>"},
	{"unknown status", "529 Overloaded", []string{"Should-Retry: true"}, "busy"},
	{"cookies", "200 OK", []string{"Set-Cookie: a=1; Path=/; HttpOnly", "Set-Cookie: b=2; Secure", "Set-Cookie: a=3"}, whole},
	{"unknown headers", "200 OK", []string{"X-Request-Id: req_1", "Openai-Organization: org", "X-Many: 1", "X-Many: 2, 3",
		"Cf-Ray: 8a", "Strict-Transport-Security: max-age=1", "Alt-Svc: h3=\":443\"", "Vary: Accept-Encoding", "Server: cloudflare",
		"Date: Mon, 06 Jan 2025 10:00:00 GMT", "Etag: \"x\"", "Cache-Control: no-store"}, whole},
	{"encoded", "200 OK", []string{"Content-Type: application/json", "Content-Encoding: x-own"}, "\x1f\x8b\x08\x00not really"},
	{"binary", "200 OK", []string{"Content-Type: audio/mpeg"}, "\x00\xff\r\n\x00\x01"},
}

func TestAnswersArriveUnchanged(t *testing.T) {
	for _, c := range answers {
		for _, path := range []string{chatPath, "/v1/audio/speech"} {
			t.Run(c.name+path, func(t *testing.T) {
				t.Parallel()
				checkAnswer(t, c, path)
			})
		}
	}
}

func checkAnswer(t *testing.T, c canned, path string) {
	header := append(slices.Clone(c.header), "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "Proxy-Authenticate: Basic")
	if c.body != "" {
		header = append(header, "Content-Length: "+strconv.Itoa(len(c.body)))
	}
	r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 "+c.status+"\r\n"+strings.Join(header, "\r\n")+"\r\n\r\n"+c.body)})
	resp, err := r.client.Transport.RoundTrip(r.request(guard(t), http.MethodPost, path, hello))
	must(t, err)
	if got := drain(t, resp); got != c.body {
		t.Errorf("got  %q\nwant %q", got, c.body)
	}
	if status := fmt.Sprint(resp.StatusCode); !strings.HasPrefix(c.status, status) {
		t.Errorf("status %s, want %s", status, c.status)
	}
	want := http.Header{}
	for _, line := range c.header {
		name, value, _ := strings.Cut(line, ": ")
		want.Add(name, value)
	}
	for name, values := range resp.Header {
		switch {
		case name == "Content-Length", strings.HasPrefix(name, "X-Dewpoint-"):
		case !slices.Equal(values, want[http.CanonicalHeaderKey(name)]):
			t.Errorf("%s: got %q, want %q", name, values, want[name])
		}
	}
	for name := range want {
		if resp.Header.Values(name) == nil {
			t.Errorf("%s is lost", name)
		}
	}
	if c.body != "" && resp.ContentLength != int64(len(c.body)) {
		t.Errorf("content length %d", resp.ContentLength)
	}
}

func TestAnswersWithoutLength(t *testing.T) {
	for name, answer := range map[string]string{
		"chunked":          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(whole, 11),
		"until it closes":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + whole,
		"of a 1.0 server":  "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + whole,
		"with trailers":    "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.TrimSuffix(chunked(whole, 11), "\r\n") + "X-T: 1\r\n\r\n",
		"after early hint": "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(whole, 11),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{base: cannedUpstream(t, answer)})
			if resp, got := r.ask(hello); got != whole || resp.StatusCode != http.StatusOK {
				t.Errorf("status %d, %q", resp.StatusCode, got)
			}
		})
	}
}

func TestUpstreamCanNotSpeakForTheProxy(t *testing.T) {
	r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 200 OK\r\nX-Dewpoint-Session: forged\r\nContent-Length: 2\r\n\r\n{}")})
	resp, _ := r.ask(hello)
	if got := resp.Header.Values("X-Dewpoint-Session"); len(got) != 1 || got[0] == "forged" {
		t.Errorf("session %q", got)
	}
}

func TestHead(t *testing.T) {
	for name, length := range map[string]string{"sized": "Content-Length: 321\r\n", "not sized": "Transfer-Encoding: chunked\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{base: cannedUpstream(t, "HTTP/1.1 200 OK\r\nX-A: b\r\nConnection: close\r\n"+length+"\r\n")})
			w := r.dial()
			for _, version := range []string{"1.1", "1.0", "1.1"} { // nothing is left over on the connection
				w.send("HEAD /v1/models HTTP/" + version + "\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
				resp, body := w.answer(http.MethodHead)
				if resp.StatusCode != http.StatusOK || body != "" || resp.Header.Get("X-A") != "b" || len(resp.TransferEncoding) > 0 {
					t.Errorf("status %d, header %v, encoding %s", resp.StatusCode, resp.Header, resp.TransferEncoding)
				}
				if name == "sized" && resp.ContentLength != 321 {
					t.Errorf("content length %d", resp.ContentLength)
				}
			}
		})
	}
}
