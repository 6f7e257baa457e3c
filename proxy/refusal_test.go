package proxy_test

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// choosy refuses every body with a record in it while strict is set.
type choosy struct {
	strict atomic.Bool
	*rig
}

func newChoosy(t *testing.T, s setup) *choosy {
	c := &choosy{}
	c.strict.Store(true)
	s.upstream.Reply = func(r *fakeupstream.Request) fakeupstream.Answer {
		if c.strict.Load() && bytes.Contains(r.Body, []byte("dewpoint_record")) {
			return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "This is not allowed here."}}
		}
		return fakeupstream.Answer{Content: "Fine."}
	}
	c.rig = condensing(t, s)
	return c
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
	clock.pass(engine.RefusalKept + time.Second)
	step(31, 2, 1)
	c.strict.Store(false)
	clock.pass(engine.RefusalKept + time.Second)
	c.wantCondensed(messages(turns("ships", 33)...))
	c.strict.Store(true)
	step(35, 2, 0)
}

// TestARefusalIsTriedAgain if the client asks for it, or the history does not fit otherwise.
func TestARefusalIsTriedAgain(t *testing.T) {
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

// TestWhatIsShapedAndRefused: refusals of a shaped history are remembered, too.
func TestWhatIsShapedAndRefused(t *testing.T) {
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
