package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

type sessionPage struct {
	Sessions []struct {
		ID, Tenant, Key string
		Count           int `json:"thread_count"`
	}
	Next string
}

type threadInfo struct {
	ID, Session, Parent, Purpose string
	Length, Condensations        int
	Entries                      uint64
	ForkAt                       int  `json:"fork_at"`
	Pending                      bool `json:"condensation_pending"`
}

// TestEveryRoute calls each route for a condensed session and validates the responses.
func TestEveryRoute(t *testing.T) {
	r := start(t, func(cfg *config.Config) {
		cfg.Upstream.Compaction, cfg.Holdout.Share = config.CompactionAnswer, 1e-9
		cfg.Condenser.BackgroundAt = 0.6
		budget := limit.Budget{Tokens: 1e9, Period: limit.Month}
		cfg.Limits.Tenant.Budget, cfg.Limits.Tenant.SessionBudget = budget, budget
	})
	conversation := turns("ships", 15)
	p := r.grow(conversation, 2)
	fork := r.ask(append(conversation[:14:14], say("user", "Now something else, please.")))
	var page sessionPage
	r.get("/api/v1/sessions", &page)
	if len(page.Sessions) != 1 || page.Sessions[0].ID != p.session || page.Sessions[0].Count != 2 || page.Sessions[0].Tenant != "default" {
		t.Fatalf("sessions %+v", page)
	}
	var one struct{ Threads []threadInfo }
	r.get("/api/v1/sessions/"+p.session, &one)
	if len(one.Threads) != 2 || one.Threads[0].ID != p.thread || one.Threads[1].Parent != p.thread || one.Threads[1].ID != fork.thread {
		t.Errorf("threads %+v", one.Threads)
	}
	var thread threadInfo
	r.get(p.url(""), &thread)
	if thread != one.Threads[0] || thread.Length != 15 || thread.Condensations == 0 || thread.Purpose != "main" {
		t.Errorf("thread %+v", thread)
	}
	for _, path := range []string{
		"/events", "/events?content=true&limit=3", "/condensations", "/condensations?from=2&limit=1", "/view", "/diff", "/diff?model=" + agentModel, "/savings",
	} {
		for _, at := range []place{p, fork} {
			r.get(at.url(path), new(any))
		}
	}
	r.get("/api/v1/sessions/"+p.session+"/savings", new(any))
	r.get("/api/v1/savings?by=day", new(any))
	var recorded requestsShown
	r.get("/api/v1/sessions/"+p.session+"/requests", &recorded)
	r.get("/api/v1/requests/"+recorded.Requests[0].Request, new(any))
	r.get("/api/v1/tenants", new(any))
	r.get("/api/v1/config", new(any))
	var held struct {
		Holdouts []struct {
			Condensed struct{ Sessions, Steps int }
		}
	}
	r.get("/api/v1/holdouts", &held)
	if len(held.Holdouts) != 1 || held.Holdouts[0].Condensed.Sessions != 1 || held.Holdouts[0].Condensed.Steps < 8 {
		t.Errorf("holdouts %+v", held)
	}
	for _, path := range []string{"/api/v1/budgets", "/api/v1/sessions/" + p.session + "/budgets"} {
		var spent struct {
			Budgets []struct{ Limit, Spent float64 }
		}
		if r.get(path, &spent); len(spent.Budgets) != 1 || spent.Budgets[0].Limit != 1e9 || spent.Budgets[0].Spent <= 0 {
			t.Errorf("%s: %+v", path, spent)
		}
	}
	question := fmt.Sprintf(`{"body":{"model":%q,"messages":[%s]}}`, agentModel, strings.Join(conversation, ","))
	if a := r.callWith(question, http.MethodPost, "/api/v1/explain"); a.StatusCode != http.StatusOK {
		t.Errorf("explain: %d %s", a.StatusCode, a.body)
	}
	for sealed, status := range map[string]int{r.compaction(): http.StatusOK, "dewpoint.1.made-up": http.StatusBadRequest} {
		if a := r.callWith(fmt.Sprintf(`{"sealed":%q}`, sealed), http.MethodPost, "/api/v1/unseal"); a.StatusCode != status {
			t.Errorf("unseal: %d %s", a.StatusCode, a.body)
		}
	}
	if a := r.call(http.MethodGet, "/api/v1/openapi.yaml"); string(a.body) != string(admin.Document()) {
		t.Errorf("the document is %d bytes", len(a.body))
	}
	if a := r.call(http.MethodPost, p.url("/condense")); a.StatusCode != http.StatusAccepted {
		t.Errorf("condense: %d %s", a.StatusCode, a.body)
	}
	planes := r.grow(turns("planes", 9), 2)
	if a := r.correct(planes, r.waiting(planes).Version, "CURRENT_STATE: they fly", ""); a.StatusCode != http.StatusOK {
		t.Errorf("correct: %d %s", a.StatusCode, a.body)
	}
	for _, path := range []string{"/api/v1/condensing", "/api/v1/tenants/default/condensing"} {
		r.override(path, "observe", "1h")
		r.get("/api/v1/condensing", new(any))
		r.override(path, "", "")
	}
	r.call(http.MethodDelete, "/api/v1/sessions?key=none")
	if a := r.call(http.MethodDelete, "/api/v1/sessions/"+p.session); a.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %d %s", a.StatusCode, a.body)
	}
	if a := r.call(http.MethodPost, "/api/v1/compact"); a.StatusCode != http.StatusNoContent {
		t.Errorf("compact: %d %s", a.StatusCode, a.body)
	}
	for _, item := range r.spec.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if !r.spec.seen[op.OperationID] {
				t.Errorf("%s was not called", op.OperationID)
			}
		}
	}
}

func TestSessionsByPage(t *testing.T) {
	r := start(t, nil)
	for i := range 7 {
		r.ask(turns("ships", 1), "X-Dewpoint-Session", "job-"+string(rune('a'+i)))
	}
	seen := map[string]bool{}
	for cursor := ""; ; {
		var page sessionPage
		r.get("/api/v1/sessions?limit=2&tenant=default&since=2020-01-01T00:00:00Z&cursor="+cursor, &page)
		if len(page.Sessions) > 2 {
			t.Errorf("a page of %d", len(page.Sessions))
		}
		for _, s := range page.Sessions {
			seen[s.Key] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 7 {
		t.Errorf("seen %v", seen)
	}
	var page sessionPage
	r.get("/api/v1/sessions?key=job-c", &page)
	if len(page.Sessions) != 1 || page.Sessions[0].Key != "job-c" {
		t.Errorf("by key: %+v", page)
	}
	r.get("/api/v1/sessions?since=2999-01-01T00:00:00Z", &page)
	if len(page.Sessions) != 0 {
		t.Errorf("from the future: %+v", page)
	}
}

func TestEventsByPage(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 13)
	p := r.grow(conversation, 2)
	type event struct {
		Seq      uint64
		Position int
		Kind     string
		Message  json.RawMessage
	}
	var all []event
	for from := "1"; from != ""; {
		var page struct {
			Events []event
			Next   json.Number
		}
		r.get(p.url("/events?limit=4&content=true&from="+from), &page)
		all, from = append(all, page.Events...), page.Next.String()
	}
	kinds := map[string]int{}
	for i, e := range all {
		if kinds[e.Kind]++; e.Seq != uint64(i+1) {
			t.Errorf("entry %d has seq %d", i, e.Seq)
		}
		if e.Position > 0 && string(e.Message) != conversation[e.Position] {
			t.Errorf("position %d is %s", e.Position, e.Message)
		}
	}
	if kinds["system"] != 1 || kinds["user"] != 7 || kinds["agent"] != 6 || kinds["condensation"] == 0 {
		t.Errorf("kinds %v", kinds)
	}
	if a := r.call(http.MethodGet, p.url("/events")); strings.Contains(string(a.body), "and so on") {
		t.Error("content was shown without being asked for")
	}
}

func TestRefusals(t *testing.T) {
	r := start(t, nil)
	p := r.ask(turns("ships", 1))
	other := r.ask(turns("planes", 1), "X-Dewpoint-Session", "another")
	get := func(path string, status int, code string) {
		t.Helper()
		r.call(http.MethodGet, path).fails(t, status, code)
	}
	get("/api/v1/sessions?limt=3", 400, "unknown_parameter")
	get("/api/v1/config?a=b", 400, "unknown_parameter")
	get("/api/v1/sessions?limit=0", 400, "invalid_parameter")
	get("/api/v1/sessions?limit=501", 400, "invalid_parameter")
	get("/api/v1/sessions?limit=1&limit=2", 400, "invalid_parameter")
	get("/api/v1/sessions?since=yesterday", 400, "invalid_parameter")
	get("/api/v1/sessions?cursor=%21", 400, "invalid_parameter")
	get("/api/v1/sessions?tenant="+strings.Repeat("x", 257), 400, "invalid_parameter")
	get("/api/v1/sessions?a=%zz", 400, "invalid_query")
	get("/api/v1/sessions/nobody", 404, "session_not_found")
	get("/api/v1/sessions/no%20body", 400, "invalid_parameter")
	get("/api/v1/sessions/"+strings.Repeat("a", 129), 400, "invalid_parameter")
	get("/api/v1/sessions/..%2f..%2fetc", 400, "invalid_parameter")
	get("/api/v1/sessions/nobody/savings", 404, "session_not_found")
	get("/api/v1/sessions/"+p.session+"/threads/nobody", 404, "thread_not_found")
	get("/api/v1/sessions/"+p.session+"/threads/"+other.thread+"/view", 404, "thread_not_found")
	get(p.url("/events?content=yes"), 400, "invalid_parameter")
	get(p.url("/events?from=0"), 400, "invalid_parameter")
	get(p.url("/condensations?limit=51"), 400, "invalid_parameter")
	get(p.url("/nothing"), 404, "not_found")
	get("/api/v2/sessions", 404, "not_found")
	get("/nothing", 404, "not_found")
	get(p.url("/condense"), 405, "method_not_allowed")
	r.call(http.MethodPut, p.url("")).fails(t, 405, "method_not_allowed")
	r.call(http.MethodPost, "/api/v1/sessions").fails(t, 405, "method_not_allowed")
	r.call(http.MethodDelete, "/api/v1/sessions/nobody").fails(t, 404, "session_not_found")
	r.call(http.MethodPost, "/api/v1/sessions/nobody/threads/nobody/condense").fails(t, 404, "thread_not_found")
	if a := r.call(http.MethodPut, "/api/v1/sessions/"+p.session); a.Header.Get("Allow") != "DELETE, GET, HEAD" {
		t.Errorf("allowed %q", a.Header.Get("Allow"))
	}
}

// compaction returns the sealed record of a history that the proxy compacted.
func (r *rig) compaction() string {
	r.t.Helper()
	r.up.Script(fakeupstream.Answer{Content: "CURRENT_STATE: all is well."})
	body := `{"model":"` + agentModel + `","input":[{"role":"user","content":"Repair the build."}]}`
	resp, err := (&http.Client{Transport: &r.http}).Post("http://"+r.app.Addr()+"/v1/responses/compact", "application/json", strings.NewReader(body))
	must(r.t, err)
	defer resp.Body.Close()
	var out struct {
		Output []struct {
			Content string `json:"encrypted_content"`
		}
	}
	must(r.t, json.NewDecoder(resp.Body).Decode(&out))
	return out.Output[0].Content
}
