package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// waits is a rig whose summaries arrive when hold is closed, and whose streams get comments meanwhile.
func waits(t *testing.T, hold <-chan struct{}, model string, reply fakeupstream.Answer) *rig {
	t.Helper()
	up := fakeupstream.Options{
		Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "DISCUSSED: they spoke of ships.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
		},
		Reply: func(*fakeupstream.Request) fakeupstream.Answer { return reply },
	}
	if model != "" {
		up.Models = []string{model}
	}
	return condensing(t, setup{upstream: up, limits: func(l *proxy.Limits) { l.KeepAlive = time.Millisecond }})
}

// streamOf is a conversation that asks for a stream.
func streamOf(n int) string {
	return strings.Replace(messages(turns("ships", n)...), "{", `{"stream":true,`, 1)
}

const comment = ": condensing\n\n"

// TestWaitingStreamIsKeptAlive: the header and comments arrive during the condensation, then our headers as comments, and upstream's answer
// unchanged.
func TestWaitingStreamIsKeptAlive(t *testing.T) {
	hold := make(chan struct{})
	r := waits(t, hold, "", fakeupstream.Answer{Content: "Ahoy."})
	w := r.dial()
	w.post(streamOf(11))
	resp := w.begin(http.MethodPost)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s, %v", resp.Status, resp.Header)
	}
	stream := bufio.NewReader(resp.Body)
	for range 3 {
		if got := readEvent(t, stream); got != comment {
			t.Fatalf("got %q", got)
		}
	}
	close(hold)
	got := readEvent(t, stream)
	for got == comment {
		got = readEvent(t, stream)
	}
	if !strings.Contains(got, ": X-Dewpoint-Condensed: events; ") || !strings.Contains(got, ": X-Dewpoint-Session: ") {
		t.Errorf("told %q", got)
	}
	answer := drainAll(t, stream)
	if !strings.HasPrefix(answer, `data: {"id"`) || !strings.HasSuffix(answer, "data: [DONE]\n\n") {
		t.Errorf("answered %q", answer)
	}
	r.wantCondensed(streamOf(11))
}

// TestErrorsWithinAWaitingStream: an error after the client has its status is sent as an event in OpenAI's shape, and ends the stream.
func TestErrorsWithinAWaitingStream(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		reply fakeupstream.Answer
		want  string
		code  string
	}{
		"refused":      {"other", fakeupstream.Answer{}, `"code":"model_not_found"`, "upstream_4xx"},
		"rate limited": {"", fakeupstream.RateLimited("7"), `"code":"rate_limit_exceeded"`, "upstream_4xx"},
		"a page":       {"", fakeupstream.BadGateway(), `"message":"The upstream answered with status 502."`, "upstream_5xx"},
		"in other words": {"", fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 422, ContentType: "application/json", Body: []byte(`{"detail":[{"msg":"no tools"}]}`)}},
			`The upstream answered with status 422. {\"detail\":[{\"msg\":\"no tools\"}]}"`, "upstream_4xx"},
		"not streamed": {"", fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 200, ContentType: "application/json", Body: []byte(`{"choices":[]}`)}},
			`"code":"upstream_not_streamed"`, "upstream_5xx"},
		"unreachable": {"", fakeupstream.Answer{Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: -1}},
			`"code":"upstream_unreachable"`, "upstream_unreachable"},
		"broken": {"", fakeupstream.Answer{Content: "Ahoy.", Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: 1}}, "", "upstream_broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold := make(chan struct{})
			r := waits(t, hold, c.model, c.reply)
			w := r.dial()
			w.post(streamOf(11))
			resp := w.begin(http.MethodPost)
			stream := bufio.NewReader(resp.Body)
			readEvent(t, stream)
			close(hold)
			if c.want == "" {
				if wantBroken(t, resp) == "" {
					t.Error("nothing came")
				}
				return
			}
			_, last, ok := strings.Cut(drainAll(t, stream), "data: ")
			if !ok || !strings.HasPrefix(last, `{"error":{`) || !strings.Contains(last, c.want) || strings.Count(last, "\n") != 2 {
				t.Errorf("told %q", last)
			}
			eventually(t, "it is counted", func() bool { return strings.Contains(r.scrape(), `dewpoint_requests_total{code="`+c.code+`"`) })
		})
	}
}

// TestEncodedAnswerToAWaitingStream: the client has a header without an encoding, so an answer that cannot be decoded becomes an error event.
func TestEncodedAnswerToAWaitingStream(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/json"} {
		resp, stream := waitsFor(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Encoding", "x-own")
			_, _ = w.Write([]byte("\x1f\x8b\x08\x00 not to be shown"))
		}, nil)
		defer resp.Body.Close()
		answer := drainAll(t, stream)
		_, last, _ := strings.Cut(answer, "data: ")
		if strings.Contains(answer, "not to be shown") || !strings.Contains(last, `"code":"upstream_not_streamed"`) {
			t.Errorf("%s: told %q", kind, answer)
		}
	}
}

// TestAStalledAnswerToAWaitingStream: an answer that is not a stream is read before it is sent as an event, but not waited for indefinitely.
func TestAStalledAnswerToAWaitingStream(t *testing.T) {
	resp, stream := waitsFor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"error":`))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, func(l *proxy.Limits) { l.StreamIdle = 50 * time.Millisecond })
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, stream) // it ends
}

// waitsFor starts a stream that waits for a summary and then gets an answer from upstream.
func waitsFor(t *testing.T, answer http.HandlerFunc, limits func(*proxy.Limits)) (*http.Response, *bufio.Reader) {
	t.Helper()
	hold := make(chan struct{})
	models := fakeupstream.New(fakeupstream.Options{
		SummariserModels: []string{cheapModel},
		Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "DISCUSSED: they spoke of ships.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
		},
	})
	t.Cleanup(models.Close)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Body = io.NopCloser(bytes.NewReader(body)); err != nil || bytes.Contains(body, []byte(cheapModel)) {
			models.ServeHTTP(w, r)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(up.Close)
	r := condensing(t, setup{base: up.URL + "/v1", limits: func(l *proxy.Limits) {
		if l.KeepAlive = time.Millisecond; limits != nil {
			limits(l)
		}
	}})
	w := r.dial()
	w.post(streamOf(11))
	resp := w.begin(http.MethodPost)
	stream := bufio.NewReader(resp.Body)
	readEvent(t, stream)
	close(hold)
	return resp, stream
}

// TestClientLeavesAWaitingStream: nothing goes upstream, and nothing is held.
func TestClientLeavesAWaitingStream(t *testing.T) {
	for name, leave := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold := make(chan struct{})
			r := waits(t, hold, "", fakeupstream.Answer{})
			w := r.dial()
			w.post(streamOf(11))
			readEvent(t, bufio.NewReader(w.begin(http.MethodPost).Body))
			leave(w)
			r.atEnd("dewpoint_client_gone_total", 1)
			eventually(t, "it is over", func() bool { return r.metric("dewpoint_requests_in_flight") == 0 })
			close(hold)
			for _, req := range r.up.Requests() {
				if req.Model != cheapModel {
					t.Error("it went upstream")
				}
			}
		})
	}
}

// TestNoEarlyStatus: a request that does not stream gets upstream's status.
func TestNoEarlyStatus(t *testing.T) {
	hold := make(chan struct{})
	r := waits(t, hold, "other", fakeupstream.Answer{})
	w := r.dial()
	w.post(messages(turns("ships", 11)...))
	_, err := r.up.Wait(guard(t), 1)
	must(t, err)
	close(hold)
	if resp, _ := w.answer(http.MethodPost); resp.StatusCode != http.StatusNotFound {
		t.Error(resp.Status)
	}
}

func drainAll(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	_, err := r.WriteTo(&b)
	must(t, err)
	return b.String()
}
