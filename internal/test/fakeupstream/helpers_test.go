package fakeupstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

const hello = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`

const helloStream = `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}`

func start(t *testing.T, options fakeupstream.Options) *fakeupstream.Server {
	t.Helper()
	s := fakeupstream.New(options)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// guard returns a context that ends a test that would hang.
func guard(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func newPost(ctx context.Context, t *testing.T, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// chat sends a body and returns the response without reading it.
func chat(t *testing.T, s *fakeupstream.Server, body string) *http.Response {
	t.Helper()
	resp, err := newClient(t).Do(newPost(guard(t), t, s.URL()+"/v1/chat/completions", body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// ask sends a body and returns the status and all of the answer.
func ask(t *testing.T, s *fakeupstream.Server, body string) (int, string) {
	t.Helper()
	resp := chat(t, s, body)
	return resp.StatusCode, readAll(t, resp.Body)
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return string(all)
}

// wantError checks an error body in full; the status is not in it. No type is that of a bad request.
func wantError(t *testing.T, body string, want fakeupstream.APIError) {
	t.Helper()
	var got struct {
		Error struct {
			Message string
			Type    string
			Param   *string
			Code    *string
		}
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("not an error of OpenAI's shape: %v\n%s", err, body)
	}
	if want.Type == "" {
		want.Type = "invalid_request_error"
	}
	e := got.Error
	sent := fakeupstream.APIError{Status: want.Status, Message: e.Message, Type: e.Type, Param: text(e.Param), Code: text(e.Code)}
	if sent != want {
		t.Fatalf("got\n%s\nwant %+v", body, want)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// dataOf returns the data of the events of a stream.
func dataOf(t *testing.T, stream string) []string {
	t.Helper()
	var all []string
	lines := bufio.NewScanner(strings.NewReader(stream))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

// decode gives a JSON value in a form that reflect.DeepEqual compares, with numbers as they were written.
func decode(t interface{ Fatalf(string, ...any) }, raw string) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader([]byte(raw)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}
