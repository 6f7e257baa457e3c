package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestOutcomes reads from log lines, headers and metrics what condensing did for requests, and why others were not condensed.
func TestOutcomes(t *testing.T) {
	broken := func(*fakeupstream.Request) fakeupstream.Answer { return fakeupstream.ServerError() }
	observing := func(t *proxy.Tenant) { t.Observe, t.Condenser = true, llm(0, "", patience) }
	for name, c := range map[string]struct {
		setup           setup
		bodies          []string // in turn
		wish            string   // of the first
		want            string   // of the last one's line
		failed, skipped string   // told to its client
		whole           string   // counted
	}{
		"below":    {bodies: []string{messages(turns("ships", 9)...)}, want: "below"},
		"done":     {bodies: []string{messages(turns("ships", 11)...)}, want: "done"},
		"off":      {bodies: []string{messages(turns("ships", 11)...)}, wish: "off", want: "off", skipped: "off", whole: "off"},
		"off, low": {bodies: []string{messages(turns("ships", 9)...)}, wish: "off", want: "off"},
		"observed": {setup: setup{tenants: one(observing)}, bodies: []string{messages(turns("ships", 11)...)}, want: "observed", skipped: "observed", whole: "observed"},
		"shaped": {
			setup:  setup{condenser: condense.RecentEvents{KeepFirst: 1, MaxEvents: 5}},
			bodies: []string{messages(turns("ships", 11)...)}, want: "shaped",
		},
		"failed": {
			setup:  setup{upstream: fakeupstream.Options{Summarise: broken}},
			bodies: []string{messages(turns("ships", 11)...)}, want: "failed:server", failed: "server", whole: "failed",
		},
		"cooling": {
			setup:  setup{upstream: fakeupstream.Options{Summarise: broken}},
			bodies: []string{messages(turns("ships", 11)...), messages(turns("ships", 13)...)}, want: "cooling", failed: "cooling", whole: "cooling",
		},
		"excerpts": {
			setup:  setup{upstream: fakeupstream.Options{Summarise: broken}, models: windowOf(800)},
			bodies: []string{messages(turns("ships", 11)...)}, want: "excerpts", failed: "server",
		},
		"again": {
			bodies: []string{messages(turns("ships", 11)...), messages(turns("ships", 11)...)}, wish: "off", want: "again", skipped: "again", whole: "again",
		},
		"uncut": {
			setup:  setup{condenser: condense.AmortizedForgetting{Settings: condense.Settings{MaxTokens: 50}}},
			bodies: []string{messages(turns("ships", 1)...)}, want: "uncut", failed: "uncut", whole: "uncut",
		},
		"locked": {
			setup:  setup{store: func(s session.Store) session.Store { return refusing{s, session.ErrLocked} }},
			bodies: []string{messages(turns("ships", 11)...)}, want: "locked", failed: "locked", whole: "locked",
		},
		"store away": {
			setup:  setup{store: func(s session.Store) session.Store { return refusing{s, session.ErrUnavailable} }},
			bodies: []string{messages(turns("ships", 11)...)}, want: "store_away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.setup.lines = true
			r := condensing(t, c.setup)
			var resp *http.Response
			for _, body := range c.bodies {
				resp, _ = r.ask(body, "X-Dewpoint-Condense", c.wish)
				c.wish = ""
			}
			line := r.line("request", len(c.bodies))
			if why, _ := line["not_condensed"].(string); line["condense"] != c.want || line["condense_ms"] == nil || why != c.whole {
				t.Errorf("the line says %v: %v", line["condense"], line)
			}
			for name, want := range map[string]string{"X-Dewpoint-Condense-Failed": c.failed, "X-Dewpoint-Condense-Skipped": c.skipped} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if series := `dewpoint_over_limit_whole_total{tenant="default",why="` + c.whole + `"}`; c.whole != "" && r.metric(series) != 1 {
				t.Errorf("%s is %v", series, r.metric(series))
			}
			if counted := strings.Contains(r.scrape(), "dewpoint_over_limit_whole_total{"); c.whole == "" && counted {
				t.Error("counted as left whole")
			}
		})
	}
}

// refusing is a store that grants no lock, or finds nothing.
type refusing struct {
	session.Store
	err error
}

func (r refusing) Lock(context.Context, session.ThreadID, time.Duration) (session.Lease, error) {
	return session.Lease{}, r.err
}

func (r refusing) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	if errors.Is(r.err, session.ErrUnavailable) {
		return session.Found{}, r.err
	}
	return r.Store.Find(ctx, hashes, hint, traces...) // it is the store's
}

// TestRequestIDs: a plain id of the client is used in the answer, the log line and warnings.
func TestRequestIDs(t *testing.T) {
	r := condensing(t, setup{lines: true, upstream: fakeupstream.Options{
		Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return fakeupstream.ServerError() },
	}})
	for i, c := range []struct {
		given, body string
		taken       bool
	}{
		{"", hello, false},
		{"req-1.a:B_2", hello, true},
		{strings.Repeat("a", 64), hello, true},
		{strings.Repeat("a", 65), hello, false},
		{"a b", hello, false},
		{`a"b`, hello, false},
		{"é", hello, false},
		{"refused-1", "{", true},
		{"long-1", messages(turns("ships", 11)...), true},
	} {
		resp, _ := r.ask(c.body, "X-Request-Id", c.given)
		got, line := resp.Header.Get("X-Dewpoint-Request-Id"), r.line("request", i+1)
		if got == "" || got != line["request_id"] || c.taken != (got == c.given) {
			t.Errorf("%q: told %q, logged %v", c.given, got, line["request_id"])
		}
	}
	warned := r.line("not condensed", 1)
	if warned["request_id"] != "long-1" || warned["session"] == "" || warned["thread"] == "" || warned["model"] == "" || warned["reason"] != "events" {
		t.Errorf("warned %v", warned)
	}
	if warned["outcome"] != "failed" || warned["cause"] != "server" || warned["ms"] == nil || warned["condenser"] == "" {
		t.Errorf("of the condensation it says %v", warned)
	}
}
