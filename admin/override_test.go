package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// override sets an override, or removes it if mode is empty.
func (r *rig) override(path, mode, lasts string) answer {
	r.t.Helper()
	if mode == "" {
		return r.call(http.MethodDelete, path)
	}
	return r.callWith(fmt.Sprintf(`{"mode":%q,"for":%q,"reason":"drill"}`, mode, lasts), http.MethodPut, path)
}

// inForce returns the mode in force for the default tenant.
func (r *rig) inForce() (c admin.Condensing) {
	r.t.Helper()
	var list struct{ Tenants []admin.Condensing }
	r.get("/api/v1/condensing", &list)
	return list.Tenants[0]
}

// until polls until a condition holds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// second starts another replica of the service.
func (r *rig) second() *rig {
	r.t.Helper()
	two := &rig{t: r.t, cfg: r.cfg, up: r.up, spec: r.spec}
	two.restart()
	r.t.Cleanup(two.stop)
	return two
}

// TestKillSwitch switches condensing off. It checks that all replicas do so, even after a restart and a reload; that the change is logged with
// its origin and reason; and that the configuration applies again when the override is removed.
func TestKillSwitch(t *testing.T) {
	quick.Skip(t)
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, store(t))
			other := r
			if name == "redis" {
				other = r.second()
			}
			if c := r.inForce(); c.Configured != admin.ModeOn || c.InForce != admin.ModeOn || c.Override != nil {
				t.Fatalf("at first: %+v", c)
			}
			if a := r.override("/api/v1/condensing", "off", "1h"); a.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			if c := r.inForce(); c.Configured != admin.ModeOn || c.InForce != admin.ModeOff || c.Override == nil || c.Override.Reason != "drill" {
				t.Errorf("switched off: %+v", c)
			}
			until(t, "the other replica follows", func() bool { return other.inForce().InForce == admin.ModeOff })
			for _, replica := range []*rig{r, other} {
				p := replica.ask(turns("ships", 21), "X-Dewpoint-Condense", "now")
				if p.condensed != "" || len(replica.received()) != 22 {
					t.Errorf("condensed although it is off: %+v", p)
				}
				replica.call(http.MethodPost, p.url("/condense")).fails(t, http.StatusConflict, "condensing_off")
				lines := replica.logs.FilterMessage("an override of condensing is in force").All()
				if len(lines) != 1 || lines[0].ContextMap()["mode"] != "off" || lines[0].ContextMap()["reason"] != "drill" || lines[0].ContextMap()["from"] == "" {
					t.Errorf("%d lines: %v", len(lines), lines)
				}
			}
			if changes := r.logs.FilterMessage("admin change").All(); len(changes) != 1 || changes[0].ContextMap()["path"] != "/api/v1/condensing" {
				t.Errorf("changes: %v", changes)
			}
			if metrics := string(r.call(http.MethodGet, "/metrics").body); !strings.Contains(metrics, `dewpoint_condensing_switched{mode="off",tenant="default"} 1`) {
				t.Error("no metric of it")
			}
			r.restart()
			if r.inForce().InForce != admin.ModeOff {
				t.Error("forgotten with a restart")
			}
			must(t, r.app.Reload(r.cfg))
			if p := r.ask(turns("planes", 21)); p.condensed != "" {
				t.Error("a reload has switched it on")
			}
			if a := r.override("/api/v1/condensing", "", ""); a.StatusCode != http.StatusNoContent {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			until(t, "the other replica follows", func() bool { return other.inForce().InForce == admin.ModeOn })
			for i, replica := range []*rig{r, other} {
				if p := replica.ask(turns(fmt.Sprint("trains ", i), 21)); p.condensed == "" {
					t.Error("not condensed although it is on")
				}
			}
		})
	}
}

// TestOverrides checks the precedence of overrides, their validation, and that expired and invalid ones are ignored.
func TestOverrides(t *testing.T) {
	clock := time.Now()
	r := start(t, func(c *config.Config) { c.Observe = true })
	const all, own = "/api/v1/condensing", "/api/v1/tenants/default/condensing"
	for i, step := range []struct {
		path, mode string
		want       admin.Mode
	}{
		{own, "on", admin.ModeOn}, {all, "observe", admin.ModeOn}, {all, "off", admin.ModeOff}, {own, "observe", admin.ModeOff}, {all, "on", admin.ModeObserve},
		{own, "off", admin.ModeOff}, {own, "", admin.ModeOn}, {all, "", admin.ModeObserve},
	} {
		if a := r.override(step.path, step.mode, "1h30m"); a.StatusCode/100 != 2 {
			t.Fatalf("step %d: %d %s", i, a.StatusCode, a.body)
		}
		if c := r.inForce(); c.InForce != step.want || c.Configured != admin.ModeObserve {
			t.Errorf("step %d: %+v, want %s", i, c, step.want)
		}
		condensed := r.ask(turns(fmt.Sprint("case ", i), 15)).condensed != ""
		if condensed != (step.want == admin.ModeOn) {
			t.Errorf("step %d: condensed %v", i, condensed)
		}
	}
	for body, code := range map[string]string{
		`{"mode":"half","for":"1h"}`: "invalid_parameter", `{"mode":"off"}`: "invalid_parameter", `{"mode":"off","for":"1s"}`: "invalid_parameter",
		`{"mode":"off","for":"9000h"}`: "invalid_parameter", `{"mode":"off","for":"1h","x":1}`: "invalid_body", `off`: "invalid_body",
		`{"mode":"off","for":"1h","reason":"a\nb"}`: "invalid_parameter",
	} {
		r.callWith(body, http.MethodPut, all).fails(t, http.StatusBadRequest, code)
	}
	r.override("/api/v1/tenants/strangers/condensing", "off", "1h").fails(t, http.StatusBadRequest, "invalid_parameter")
	// Overrides that have expired or cannot be decoded are ignored.
	ended, err := json.Marshal(admin.Override{Mode: admin.ModeOff, Until: clock.Add(-time.Second)})
	must(t, err)
	r.stop()
	r.app = nil
	withStore(t, r.cfg, func(set func(name string, value []byte)) {
		set("condensing:", ended)
		set("condensing:default", []byte("{"))
	})
	r.restart()
	if c := r.inForce(); c.InForce != admin.ModeObserve || c.Override != nil {
		t.Errorf("what has ended, or is no override, counts: %+v", c)
	}
}

// TestOverrideEnds checks that an override expires while the service runs.
func TestOverrideEnds(t *testing.T) {
	quick.Skip(t)
	r := start(t, nil)
	r.stop()
	r.app = nil
	soon, err := json.Marshal(admin.Override{Mode: admin.ModeOff, Until: time.Now().Add(3 * time.Second)})
	must(t, err)
	withStore(t, r.cfg, func(set func(name string, value []byte)) { set("condensing:", soon) })
	r.restart()
	begun := r.logs.FilterMessage("an override of condensing is in force").Len()
	until(t, "it has ended", func() bool { return r.inForce().InForce == admin.ModeOn && r.inForce().Override == nil })
	until(t, "it is condensed", func() bool { return r.ask(turns(fmt.Sprint("at ", time.Now().UnixNano()), 15)).condensed != "" })
	if n := r.logs.FilterMessage("an override of condensing has ended").Len(); n != begun {
		t.Errorf("%d lines say so, %d that it was switched", n, begun)
	}
}

// TestSessionsAreDeletedTogether deletes sessions by key and by tenant.
func TestSessionsAreDeletedTogether(t *testing.T) {
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, store(t))
			for _, key := range []string{"a", "b", "c", "c"} {
				r.ask(turns("ships", 1), "X-Dewpoint-Session", key)
			}
			r.ask(turns("planes", 1))
			keys := func() (all []string) {
				var page sessionPage
				r.get("/api/v1/sessions", &page)
				for _, s := range page.Sessions {
					all = append(all, s.Key)
				}
				slices.Sort(all)
				return all
			}
			deleted := func(query string) int {
				a := r.call(http.MethodDelete, "/api/v1/sessions?"+query)
				var out struct {
					Deleted int
					More    bool
				}
				must(t, json.Unmarshal(a.body, &out))
				if a.StatusCode != http.StatusOK || out.More {
					t.Fatalf("%d %s", a.StatusCode, a.body)
				}
				return out.Deleted
			}
			r.call(http.MethodDelete, "/api/v1/sessions").fails(t, http.StatusBadRequest, "invalid_parameter")
			if n := deleted("key=c"); n != 1 || !slices.Equal(keys(), []string{"", "a", "b"}) {
				t.Errorf("%d by key, left are %q", n, keys())
			}
			if n := deleted("tenant=other&key=a"); n != 0 {
				t.Errorf("%d of another tenant", n)
			}
			if n := deleted("tenant=default"); n != 3 || len(keys()) != 0 {
				t.Errorf("%d by tenant, left are %q", n, keys())
			}
			if lines := r.logs.FilterMessage("admin change").All(); len(lines) != 3 || lines[0].ContextMap()["query"] != "key=redacted" ||
				lines[1].ContextMap()["query"] != "key=redacted&tenant=other" {
				t.Errorf("changes: %v", lines)
			}
		})
	}
}

// TestViewOfEarlierRequests checks the view and the diff at each earlier request, by the number of messages and by request ID.
func TestViewOfEarlierRequests(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 25)
	forwarded := map[int][]string{}
	var p place
	for n := 2; n <= len(conversation); n += 2 {
		p = r.ask(conversation[:n], "X-Request-Id", fmt.Sprint("request-", n))
		forwarded[n] = r.received()
	}
	condensed := 0
	for n, want := range forwarded {
		for _, query := range []string{fmt.Sprint("at=", n-1), fmt.Sprint("request=request-", n)} {
			var view struct{ Items []item }
			r.get(p.url("/view?"+query), &view)
			var got []string
			for _, i := range view.Items {
				got = append(got, string(i.Message))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d messages, %d were forwarded", query, len(got), len(want))
			}
			var d diffed
			if r.get(p.url("/diff?"+query), &d); len(d.Events) != n || d.Log.Events != n {
				t.Errorf("%s: the difference is of %d messages", query, len(d.Events))
			}
		}
		if len(want) < n {
			condensed++
		}
	}
	if condensed < 5 || condensed == len(forwarded) {
		t.Errorf("%d of %d were condensed", condensed, len(forwarded))
	}
	r.call(http.MethodGet, p.url("/view?at=26")).fails(t, http.StatusBadRequest, "invalid_parameter")
	r.call(http.MethodGet, p.url("/view?at=2&request=request-2")).fails(t, http.StatusBadRequest, "invalid_parameter")
	r.call(http.MethodGet, p.url("/diff?request=another")).fails(t, http.StatusNotFound, "request_not_found")
	stranger := r.ask(turns("planes", 3), "X-Request-Id", "of-another")
	r.call(http.MethodGet, p.url("/diff?request=of-another")).fails(t, http.StatusNotFound, "request_not_found")
	r.get(stranger.url("/diff?request=of-another"), new(any))
}

// TestViewOfEarlierRequestHasItsPrompt: the view at an earlier request has the system prompt of that request.
func TestViewOfEarlierRequestHasItsPrompt(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 5)
	var prompts []string
	var p place
	for n := 2; n <= len(conversation); n += 2 {
		prompts = append(prompts, say("system", fmt.Sprint("The prompt of request ", n)))
		p = r.ask(append(prompts[len(prompts)-1:], conversation[1:n]...))
	}
	for i, prompt := range prompts {
		var view struct{ Items []item }
		r.get(p.url(fmt.Sprint("/view?at=", 2*i+1)), &view)
		if len(view.Items) != 2*i+2 || string(view.Items[0].Message) != prompt {
			t.Errorf("at %d: %+v, want %s first", 2*i+1, view.Items, prompt)
		}
	}
}

// withStore opens the store of a stopped service and lets change write settings to it.
func withStore(t *testing.T, cfg *config.Config, change func(set func(name string, value []byte))) {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: cfg.Store.Path})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	change(func(name string, value []byte) { must(t, store.Set(t.Context(), name, value)) })
}

// TestArmIsEndedAtOnce: the override main ends the arm of a holdout on every replica: its sessions are condensed by the main condenser, and the
// figures so far stay.
func TestArmIsEndedAtOnce(t *testing.T) {
	noop := config.Condenser{Type: "noop"}
	r := start(t, func(cfg *config.Config) {
		cfg.Holdout = config.Holdout{Share: 0.5, Condenser: &noop}
	})
	held := func() (body struct {
		Holdouts []struct {
			Condenser string `json:"held_out_condenser"`
			Ended     bool
			Condensed struct{ Errors int }
			HeldOut   struct{ Errors int } `json:"held_out"`
		}
	}) {
		r.get("/api/v1/holdouts", &body)
		return body
	}
	condensed := func(prefix string) (n int) {
		for i := range 16 {
			if r.ask(turns(fmt.Sprint(prefix, i), 21)).condensed != "" {
				n++
			}
		}
		return n
	}
	if n := condensed("ship "); n == 0 || n == 16 {
		t.Errorf("%d of 16 sessions are condensed, want about half", n)
	}
	if h := held().Holdouts; len(h) != 1 || h[0].Condenser != "noop" || h[0].Ended {
		t.Errorf("the holdout is %+v", h)
	}
	r.up.Script(fakeupstream.ServerError())
	body := fmt.Sprintf(`{"model":%q,"messages":[%s]}`, agentModel, strings.Join(turns("boats", 1), ","))
	resp, err := (&http.Client{Transport: &r.http}).Post("http://"+r.app.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(body))
	must(t, err)
	must(t, resp.Body.Close())
	until(t, "the failure is counted", func() bool { h := held().Holdouts[0]; return h.Condensed.Errors+h.HeldOut.Errors == 1 })
	if a := r.override("/api/v1/condensing", "main", "1h"); a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if n := condensed("plane "); n != 16 {
		t.Errorf("%d of 16 sessions are condensed after the arm has ended", n)
	}
	if h := held().Holdouts; len(h) != 1 || !h[0].Ended {
		t.Errorf("the holdout is %+v after it has ended", h)
	}
}

// TestPagesSayWhichModeIsInForce sets each mode and checks what the form offers, and what the overview and the page of a session then say.
func TestPagesSayWhichModeIsInForce(t *testing.T) {
	g := &guarded{rig: start(t, nil)}
	p := g.ask(turns("ships", 3))
	browser := g.browser()
	csrf := g.signIn(browser, g.app.AdminToken())
	_, form := g.fetch(browser, http.MethodGet, "/condensing?tenant=default", "")
	words := map[admin.Mode]string{
		admin.ModeOff: "off: everything is forwarded as it is", admin.ModeObserve: "observed only: nothing is changed", admin.ModeOn: "on",
		admin.ModeMain: "on for all sessions: a holdout is ended",
	}
	for mode, says := range words {
		if !strings.Contains(form, fmt.Sprintf(">%s</option>", mode)) {
			t.Errorf("the form does not offer %s: %s", mode, form)
		}
		set := url.Values{"csrf": {csrf}, "tenant": {"default"}, "mode": {string(mode)}, "for": {"2h"}}
		if status, body := g.fetch(browser, http.MethodPost, "/condensing", set.Encode()); status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", mode, status, body)
		}
		if _, page := g.fetch(browser, http.MethodGet, "/", ""); !strings.Contains(page, ">"+says+"<") {
			t.Errorf("%s: the overview does not say %q: %s", mode, says, page)
		}
		_, page := g.fetch(browser, http.MethodGet, "/s/"+p.session, "")
		for other, words := range words {
			if want := other == mode && mode != admin.ModeOn; strings.Contains(page, "condensing is "+words+"<") != want {
				t.Errorf("%s: the page of the session says %q: %t", mode, words, !want)
			}
		}
	}
}
