package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// exchange is a request and its answer, as they pass a tap.
type exchange struct {
	method, path string
	sent         []byte
	status       int
	header       http.Header
	answer       bytes.Buffer
}

// tap is a server that records what passes it. It is safe for concurrent use.
type tap struct {
	URL    string
	server *http.Server
	work   sync.WaitGroup

	mu        sync.Mutex
	exchanges []*exchange
}

// startTap listens on a free port of the loopback interface.
func startTap(handler func(*tap) http.Handler) (*tap, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tap{URL: "http://" + listener.Addr().String()}
	t.server = &http.Server{Handler: handler(t), ReadHeaderTimeout: time.Minute}
	t.work.Go(func() { _ = t.server.Serve(listener) }) // always ErrServerClosed: only close ends it
	return t, nil
}

func (t *tap) close() {
	_ = t.server.Close()
	t.work.Wait()
}

// begin records a request. Its body can be read again.
func (t *tap) begin(r *http.Request) (*exchange, error) {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	x := &exchange{method: r.Method, path: r.URL.Path, sent: body}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges = append(t.exchanges, x)
	return x, err
}

// seen returns what has passed. It may be called once nothing passes any more.
func (t *tap) seen() []*exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exchanges
}

// before records what a server is sent and answers.
func before(server http.Handler) func(*tap) http.Handler {
	return func(t *tap) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x, err := t.begin(r)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			server.ServeHTTP(&recorder{w, t, x}, r)
		})
	}
}

// between records what passes between a client and the server at a URL, and relays it as it is.
func between(server *url.URL) func(*tap) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server); r.Out.Host = r.In.Host },
		Transport:     &http.Transport{DisableCompression: true},
		FlushInterval: -1,
	}
	return before(proxy)
}

// recorder records an answer.
type recorder struct {
	http.ResponseWriter
	tap *tap
	x   *exchange
}

func (r *recorder) WriteHeader(status int) {
	r.tap.mu.Lock()
	r.x.status, r.x.header = status, r.Header().Clone()
	r.tap.mu.Unlock()
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.x.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	r.tap.mu.Lock()
	r.x.answer.Write(p)
	r.tap.mu.Unlock()
	return r.ResponseWriter.Write(p)
}

// Unwrap lets the server find what else the writer can do.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// comments splits a stream of events into the comments that Dewpoint adds and the rest.
func comments(answer string) (added []string, rest string) {
	var kept strings.Builder
	comment := false
	for line := range strings.Lines(answer) {
		switch {
		case strings.HasPrefix(line, ":"):
			added = append(added, strings.TrimSpace(line[1:]))
			comment = true
		case comment && strings.TrimSpace(line) == "":
			comment = false
		default:
			kept.WriteString(line)
			comment = false
		}
	}
	return added, kept.String()
}

// keep writes what was sent and answered into files of a folder.
func keep(folder string, exchanges []*exchange) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for n, x := range exchanges {
		name := filepath.Join(folder, fmt.Sprintf("%03d", n))
		answer := fmt.Appendf(nil, "%s %s: %d\n%v\n\n%s", x.method, x.path, x.status, x.header, x.answer.String())
		if err := errors.Join(os.WriteFile(name+".request.json", x.sent, 0o600), os.WriteFile(name+".answer.txt", answer, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
