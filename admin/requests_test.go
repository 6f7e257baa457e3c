package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

type requestShown struct {
	Request, Session, Thread, Tenant, Protocol, Model, Agent string
	AgentVersion                                             string `json:"agent_version"`
	Begun                                                    time.Time
	Step, Status, Condensations                              int
	Due, Did, Whole, Split                                   string
	Usage                                                    struct {
		Reported              bool
		Input, Cached, Output int
	}
	Before, After struct{ Events, Tokens int }
	Parts         struct{ System, Tools, Head, Record, Kept, New int }
	USD           struct{ Charged, Saved float64 }
	MS            struct{ Whole, Upstream, Overhead float64 }
}

type requestsShown struct {
	Requests []requestShown
	Next     string
}

func TestRequestsOfASessionAreListedNewestFirst(t *testing.T) {
	r := start(t, nil)
	p := r.grow(turns("gardening", 15), 2, "User-Agent", "claude-cli/2.1.104 (external, cli)", "X-Request-Id", "same")
	last := r.send(turns("gardening", 15), "X-Request-Id", "the-last.one:1")
	if last.session != p.session {
		t.Fatalf("another session: %+v", last)
	}
	other := r.ask(turns("chess", 2))

	var all requestsShown
	r.get("/api/v1/sessions/"+p.session+"/requests", &all)
	if len(all.Requests) < 8 || all.Next != "" {
		t.Fatalf("%+v", all)
	}
	condensed := 0
	for i, q := range all.Requests {
		if i > 0 && q.Begun.After(all.Requests[i-1].Begun) {
			t.Errorf("request %d is newer than the one before", i)
		}
		parts := q.Parts.System + q.Parts.Tools + q.Parts.Head + q.Parts.Record + q.Parts.Kept + q.Parts.New
		if d := parts - q.After.Tokens; d < -3 || d > 3 { // rounding, for each part
			t.Errorf("request %d: parts %+v are %d tokens, not %d", i, q.Parts, parts, q.After.Tokens)
		}
		if q.Session != p.session || q.Tenant != "default" || q.Protocol != "chat" || q.Model != agentModel || q.Status != http.StatusOK || q.MS.Whole <= 0 {
			t.Errorf("request %d: %+v", i, q)
		}
		if !q.Usage.Reported || q.Usage.Input == 0 || q.USD.Charged <= 0 {
			t.Errorf("request %d has no usage: %+v", i, q)
		}
		condensed += q.Condensations
		if q.Condensations > 0 && (q.Did != "done" || q.Due == "" && q.Parts.Record == 0) {
			t.Errorf("request %d was condensed: %+v", i, q)
		}
	}
	oldest := all.Requests[len(all.Requests)-1]
	if oldest.Agent != "claude-cli" || oldest.AgentVersion != "2.1.104" || oldest.Step != 1 || oldest.Parts.New == 0 || oldest.Parts.Record != 0 {
		t.Errorf("the first request: %+v", oldest)
	}
	if condensed == 0 || all.Requests[0].Parts.Record == 0 || all.Requests[0].After.Tokens >= all.Requests[0].Before.Tokens {
		t.Errorf("%d condensations, and the last request is %+v", condensed, all.Requests[0])
	}

	var paged []requestShown
	for cursor := ""; ; {
		var page requestsShown
		r.get("/api/v1/sessions/"+p.session+"/requests?limit=3&cursor="+cursor, &page)
		paged = append(paged, page.Requests...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(paged) != len(all.Requests) || paged[len(paged)-1] != oldest {
		t.Errorf("%d requests in pages, %d at once", len(paged), len(all.Requests))
	}

	var one requestShown
	r.get("/api/v1/requests/the-last.one:1", &one)
	if one != all.Requests[0] {
		t.Errorf("by its id %+v, in the list %+v", one, all.Requests[0])
	}
	r.get("/api/v1/requests/same", &one)
	if one != all.Requests[1] {
		t.Errorf("the newest request with the id is %+v, want %+v", one, all.Requests[1])
	}

	r.restart()
	var again requestsShown
	r.get("/api/v1/sessions/"+p.session+"/requests", &again)
	if len(again.Requests) != len(all.Requests) {
		t.Errorf("%d requests after a restart, %d before", len(again.Requests), len(all.Requests))
	}
	r.call(http.MethodGet, "/api/v1/requests/unknown").fails(t, http.StatusNotFound, "request_not_found")
	r.call(http.MethodGet, "/api/v1/requests/"+strings.Repeat("x", 65)).fails(t, http.StatusBadRequest, "invalid_parameter")
	r.call(http.MethodGet, "/api/v1/sessions/none/requests").fails(t, http.StatusNotFound, "session_not_found")
	r.call(http.MethodGet, "/api/v1/sessions/"+p.session+"/requests?cursor=x").fails(t, http.StatusBadRequest, "invalid_parameter")
	r.call(http.MethodDelete, "/api/v1/sessions/"+p.session)
	r.call(http.MethodGet, "/api/v1/sessions/"+p.session+"/requests").fails(t, http.StatusNotFound, "session_not_found")
	r.call(http.MethodGet, "/api/v1/requests/the-last.one:1").fails(t, http.StatusNotFound, "request_not_found")
	r.get("/api/v1/sessions/"+other.session+"/requests", &again)
	if len(again.Requests) == 0 {
		t.Error("another session's requests are gone")
	}
}

// TestARequestIsFoundAmongThoseOfItsTenant: clients of two tenants choose the same id. Who may see one of the tenants finds its request, although
// the other's is newer.
func TestARequestIsFoundAmongThoseOfItsTenant(t *testing.T) {
	g := startGuarded(t)
	first := g.ask(turns("ships", 3), "Authorization", "Bearer client-a", "X-Request-Id", "job-1")
	second := g.ask(turns("planes", 3), "Authorization", "Bearer client-b", "X-Request-Id", "job-1")
	for _, c := range []struct{ token, query, want string }{
		{"token of viewer of a", "", first.session}, {token, "", second.session}, {token, "?tenant=alpha", first.session}, {token, "?tenant=beta", second.session},
	} {
		a := g.call(http.MethodGet, "/api/v1/requests/job-1"+c.query, "Authorization", "Bearer "+c.token)
		var one requestShown
		if err := json.Unmarshal(a.body, &one); err != nil || one.Session != c.want {
			t.Errorf("%s%s: %d %s, want the session %s", c.token, c.query, a.StatusCode, a.body, c.want)
		}
	}
	for _, query := range []string{"?tenant=beta", "?tenant=nobody"} {
		g.call(http.MethodGet, "/api/v1/requests/job-1"+query, "Authorization", "Bearer token of viewer of a").fails(t, http.StatusNotFound, "request_not_found")
	}
	if status, _ := g.fetch(g.browser(), http.MethodGet, "/r/job-1", "", "Authorization", "Bearer token of auditor of a"); status != http.StatusSeeOther {
		t.Errorf("the page of the request: %d", status)
	}
}
