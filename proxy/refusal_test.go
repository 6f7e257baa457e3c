package proxy_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// choosy answers with refusal while strict is set if the body has a record in it, and with failure otherwise. That is no failure by default.
type choosy struct {
	strict           atomic.Bool
	refusal, failure fakeupstream.Answer
	*rig
}

func newChoosy(t *testing.T, s setup) *choosy {
	c := &choosy{refusal: failed(http.StatusBadRequest, "This is not allowed here."), failure: fakeupstream.Answer{Content: "Fine."}}
	c.strict.Store(true)
	s.upstream.Reply = func(r *fakeupstream.Request) fakeupstream.Answer {
		switch {
		case !c.strict.Load():
			return fakeupstream.Answer{Content: "Fine."}
		case bytes.Contains(r.Body, []byte("dewpoint_record")):
			return c.refusal
		}
		return c.failure
	}
	c.rig = condensing(t, s)
	return c
}

// failed returns an error as an answer.
func failed(status int, message string) fakeupstream.Answer {
	return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: status, Message: message}}
}

// stated returns an error with status 200 as an answer, as some gateways send it.
func stated(contentType, body string) fakeupstream.Answer {
	return fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: http.StatusOK, ContentType: contentType, Body: []byte(body)}}
}

// unsized is a transport to an upstream that does not announce the length of its answers.
type unsized struct{ http.RoundTripper }

func (u unsized) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
	return resp, err
}

// used returns how many requests a step took, and how many calls of the summariser.
func (c *choosy) used(step func()) (requests, summaries int) {
	before := len(c.up.Requests())
	step()
	for _, r := range c.up.Requests()[before:] {
		if r.Summary || r.Model == cheapModel {
			summaries++
		} else {
			requests++
		}
	}
	return requests, summaries
}

// TestARefusalIsRemembered: if upstream refuses a condensed history, the next requests do not try it again for a while.
func TestARefusalIsRemembered(t *testing.T) {
	clock := &clock{now: time.Now()}
	c := newChoosy(t, setup{now: clock.Now})
	step := func(n, wantRequests, wantSummaries int, header ...string) *http.Response {
		t.Helper()
		var resp *http.Response
		requests, summaries := c.used(func() { resp = c.wantUnchanged(messages(turns("ships", n)...), header...) })
		if requests != wantRequests || summaries != wantSummaries {
			t.Errorf("%d messages: %d requests and %d summaries, want %d and %d", n, requests, summaries, wantRequests, wantSummaries)
		}
		if got := resp.Header.Get("X-Dewpoint-Condense-Failed"); got != "refused" {
			t.Errorf("%d messages: the client is told %q", n, got)
		}
		return resp
	}
	step(11, 2, 1)
	for n := 13; n < 31; n += 2 {
		if resp := step(n, 1, 0); resp.Header.Get("X-Dewpoint-Condensed") != "" {
			t.Errorf("condensed %q", resp.Header.Get("X-Dewpoint-Condensed"))
		}
	}
	if got := c.metric(`dewpoint_over_limit_whole_total{tenant="default",why="refused"}`); got != 9 {
		t.Errorf("counted %v times", got)
	}
	clock.pass(lessons.RefusalHeld + time.Second)
	step(31, 2, 1)
	c.strict.Store(false)
	clock.pass(lessons.RefusalHeld + time.Second)
	c.wantCondensed(messages(turns("ships", 33)...))
	c.strict.Store(true)
	step(35, 2, 0)
}

// TestRefusedHistoryIsTriedAgainWhenAskedOrNeeded if the client asks for it, or the history does not fit otherwise.
func TestRefusedHistoryIsTriedAgainWhenAskedOrNeeded(t *testing.T) {
	for name, s := range map[string]setup{
		"asked for":      {},
		"window known":   {models: windowOf(4000)},
		"window unknown": {},
	} {
		t.Run(name, func(t *testing.T) {
			s.upstream.Windows = map[string]int{"gpt-4o": 4000}
			c := newChoosy(t, s)
			c.wantUnchanged(messages(turns("ships", 11)...))
			c.wantUnchanged(messages(turns("ships", 13)...))
			c.strict.Store(false)
			if name == "asked for" {
				c.wantCondensed(messages(turns("ships", 15)...), "X-Dewpoint-Condense", "now")
			} else {
				c.wantCondensed(messages(turns("ships", 41)...))
			}
			before := c.refusals()
			c.wantCondensed(messages(turns("ships", 43)...))
			if got := c.refusals() - before; got != 0 {
				t.Errorf("%d more requests were refused", got)
			}
		})
	}
}

// TestRefusalOfAShapedHistoryIsRemembered: refusals of a shaped history are remembered, too.
func TestRefusalOfAShapedHistoryIsRemembered(t *testing.T) {
	r := condensing(t, setup{condenser: condense.RecentEvents{KeepFirst: 1, MaxEvents: 5}, upstream: fakeupstream.Options{
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			if len(r.Messages) < 10 {
				return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "This is not allowed here."}}
			}
			return fakeupstream.Answer{Content: "Fine."}
		},
	}})
	for n := 11; n < 21; n += 2 {
		r.wantUnchanged(messages(turns("ships", n)...))
	}
	if got := len(r.up.Requests()); got != 6 {
		t.Errorf("%d requests for 5 steps", got)
	}
}

// TestErrorInPlaceOfAnAnswerIsARefusal counts as a refusal, unless it is about the rate, the load or the key, or the status it states says so.
func TestErrorInPlaceOfAnAnswerIsARefusal(t *testing.T) {
	quick.Skip(t)
	transport := proxy.NewTransport(0, dial.Guard{})
	t.Cleanup(transport.CloseIdleConnections)
	f := func(body string, again bool) {
		t.Helper()
		for name, answer := range map[string]fakeupstream.Answer{
			"json": stated("application/json", body), "unsized": stated("application/json", body),
			"stream": stated("text/event-stream", "data: "+body+"\n\ndata: [DONE]\n\n"),
		} {
			s := setup{}
			if name == "unsized" {
				s.transport = unsized{transport}
			}
			c := newChoosy(t, s)
			c.refusal = answer
			requests, _ := c.used(func() {
				if _, got := c.ask(messages(turns("ships", 11)...)); again == strings.Contains(got, "error") {
					t.Errorf("%s: %s: %s", name, body, got)
				}
			})
			if want := map[bool]int{true: 2, false: 1}[again]; requests != want {
				t.Errorf("%s: %s: %d requests", name, body, requests)
			}
		}
	}
	f(`{"error":{"message":"text content blocks must not contain <dewpoint>","type":"invalid_request_error"}}`, true)
	f(`{"object":"error","message":"Bad messages order","type":"BadRequestError","code":400}`, true)
	f(`{"error":{"message":"Provider returned error","code":500}}`, true)
	f(`{"error":{"message":"Provider returned error","code":502}}`, false)
	f(`{"error":{"message":"No.","code":401}}`, false)
	f(`{"error":{"message":"Slow down.","type":"rate_limit_error"}}`, false)
	f(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, false)
	f(`{"error":{"message":"No credit is left.","code":"insufficient_quota"}}`, false)
}

// TestEmptyErrorInAnAnswerIsNoRefusal is an answer.
func TestEmptyErrorInAnAnswerIsNoRefusal(t *testing.T) {
	c := newChoosy(t, setup{})
	c.refusal = stated("application/json", `{"choices":[{"message":{"role":"assistant","content":"Fine."}}],"error":"","errors":[]}`)
	c.wantCondensed(messages(turns("ships", 11)...))
}

// TestOutageDoesNotDoubleRequests: an upstream that fails whatever it is sent gets an unchanged body a minute, and is not remembered to refuse
// condensed histories.
func TestOutageDoesNotDoubleRequests(t *testing.T) {
	for name, answer := range map[string]fakeupstream.Answer{
		"500": failed(http.StatusInternalServerError, "It broke."), "200": stated("application/json", `{"error":{"message":"It broke."}}`),
	} {
		clock := &clock{now: time.Now()}
		c := newChoosy(t, setup{now: clock.Now})
		c.refusal, c.failure = answer, answer
		step := func(thread string, n, want int) {
			t.Helper()
			requests, _ := c.used(func() {
				if _, got := c.ask(messages(turns(thread, n)...)); !strings.Contains(got, "It broke.") {
					t.Errorf("%s: %s", name, got)
				}
			})
			if requests != want {
				t.Errorf("%s: %s, %d messages: %d requests, want %d", name, thread, n, requests, want)
			}
		}
		step("ships", 11, 2)
		step("ships", 13, 1)
		step("trains", 11, 1)
		clock.pass(lessons.FailureHeld)
		step("trains", 13, 2)
		step("ships", 15, 1)
		c.strict.Store(false)
		c.wantCondensed(messages(turns("ships", 17)...))
	}
}

// TestFailureThatPassesIsNoRefusal: a request that failed once in its condensed form is served unchanged, and the next one condensed. A refusal lasts.
func TestFailureThatPassesIsNoRefusal(t *testing.T) {
	for status, lasts := range map[int]bool{http.StatusInternalServerError: false, http.StatusForbidden: true} {
		c := newChoosy(t, setup{})
		c.strict.Store(false)
		c.wantCondensed(messages(turns("ships", 31)...))
		c.up.Script(failed(status, "It broke."))
		if resp, got := c.ask(messages(turns("ships", 33)...)); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", status, got)
		}
		sent := messages(turns("ships", 35)...)
		if resp, got := c.ask(sent); resp.StatusCode != http.StatusOK || (string(c.forwarded().Body) == sent) != lasts {
			t.Errorf("%d: %s, %d of %d bytes: %s", status, resp.Status, len(c.forwarded().Body), len(sent), got)
		}
	}
}

// TestFailureIsRetriedCondensedIfTheUnchangedBodyIsTooLong: if upstream fails once, and the unchanged body would be too long for it, the condensed one is sent again, and
// not remembered as refused.
func TestFailureIsRetriedCondensedIfTheUnchangedBodyIsTooLong(t *testing.T) {
	c := newChoosy(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 4000}}})
	c.strict.Store(false)
	c.wantCondensed(messages(turns("ships", 31)...))
	c.up.Script(failed(http.StatusInternalServerError, "It broke."))
	if requests, _ := c.used(func() { c.wantCondensed(messages(turns("ships", 45)...)) }); requests != 3 {
		t.Errorf("%d requests", requests)
	}
	c.up.Script(failed(http.StatusInternalServerError, "It broke."))
	if requests, _ := c.used(func() {
		if resp, _ := c.ask(messages(turns("ships", 47)...)); resp.StatusCode != http.StatusInternalServerError {
			t.Errorf("%s", resp.Status)
		}
	}); requests != 1 { // the window is known now
		t.Errorf("%d requests", requests)
	}
	if requests, _ := c.used(func() { c.wantCondensed(messages(turns("ships", 49)...)) }); requests != 1 {
		t.Errorf("%d requests", requests)
	}
}
