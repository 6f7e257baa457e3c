package admin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
)

// Words that stand in the content of the sessions of two tenants, and their keys.
const (
	wordsOfA, wordsOfB = "WORDS-OF-ALPHA", "WORDS-OF-BETA"
	keyOfA, keyOfB     = "key-of-alpha", "key-of-beta"
)

// visitor is a token, and what it must not show.
type visitor struct {
	name    string
	token   string
	never   []string // texts that no answer may contain
	changes bool     // it may change things of its tenants
}

// withoutToken is the name of the visitor who has no valid token.
const withoutToken = "without token"

// guarded is a service with two tenants and tokens of all kinds.
type guarded struct {
	*rig
	a, b     place
	visitors []visitor
	attempts int
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	roles := []config.AdminToken{
		{Name: "viewer", Role: config.RoleViewer}, {Name: "auditor", Role: config.RoleAuditor}, {Name: "viewer of a", Role: config.RoleViewer, Tenants: []string{"alpha"}},
		{Name: "auditor of a", Role: config.RoleAuditor, Tenants: []string{"alpha"}}, {Name: "operator of a", Role: config.RoleOperator, Tenants: []string{"alpha"}},
	}
	for i := range roles {
		roles[i].SHA256 = hashOf("token of " + roles[i].Name)
	}
	g := &guarded{rig: start(t, func(c *config.Config) {
		c.Admin.Token, c.Admin.Tokens = token, roles
		c.Tenants = []config.Tenant{
			{Name: "alpha", APIKeys: []config.APIKey{{SHA256: hashOf("client-a")}}}, {Name: "beta", APIKeys: []config.APIKey{{SHA256: hashOf("client-b")}}},
		}
	})}
	g.a = g.grow(turns(wordsOfA, 13), 1, "Authorization", "Bearer client-a", "X-Dewpoint-Session", keyOfA)
	g.b = g.grow(turns(wordsOfB, 13), 1, "Authorization", "Bearer client-b", "X-Dewpoint-Session", keyOfB)
	if len(g.condensations(g.a)) == 0 {
		t.Fatal("nothing was condensed, so there is less to see than there should be")
	}
	content, foreign := []string{wordsOfA, wordsOfB}, []string{wordsOfB, keyOfB, g.b.session, g.b.thread}
	g.visitors = []visitor{
		{name: "viewer", never: content}, {name: "auditor"}, {name: "viewer of a", never: slices.Concat(content, foreign)}, {name: "auditor of a", never: foreign},
		{name: "operator of a", never: foreign, changes: true}, {name: withoutToken, never: slices.Concat(content, foreign, []string{keyOfA, g.a.session})},
	}
	for i := range g.visitors {
		g.visitors[i].token = "token of " + g.visitors[i].name
	}
	return g
}

// addresses returns the address of everything that can be seen.
func (g *guarded) addresses() (all []string) {
	for _, p := range []place{g.a, g.b} {
		page := "/s/" + p.session
		all = append(all, p.url("/view"), p.url("/diff"), p.url("/events?content=true"), p.url("/condensations"), p.url(""), p.url("/savings"), "/api/v1/sessions/"+p.session,
			"/api/v1/sessions/"+p.session+"/budgets", "/api/v1/sessions/"+p.session+"/requests", page, page+"/"+p.thread+"/12", page+"/"+p.thread+"/12?from=2", page+"/"+p.thread+"/12/m/2", page+"/"+p.thread+"/12/m/4", page+"/export")
		all = append(all, g.condensations(p)...)
	}
	return append(all, "/", "/sessions", "/sessions?q="+wordsOfB, "/sessions?q="+keyOfB, "/sessions?tenant=beta", "/activity", "/activity/export", "/api/v1/sessions",
		"/api/v1/sessions?tenant=beta", "/api/v1/sessions?key="+keyOfB, "/api/v1/tenants", "/api/v1/condensing", "/api/v1/budgets", "/api/v1/holdouts", "/api/v1/config", "/metrics")
}

// condensations returns the addresses of the pages of a thread's condensations.
func (g *guarded) condensations(p place) (all []string) {
	g.t.Helper()
	var list struct {
		Condensations []struct {
			ID struct {
				Thread string
				Seq    int
			}
		}
	}
	g.get(p.url("/condensations"), &list)
	for _, c := range list.Condensations {
		all = append(all, fmt.Sprintf("/s/%s/%s/c/%s.%d", p.session, p.thread, c.ID.Thread, c.ID.Seq))
	}
	return all
}

// fetch sends a request as a client that follows no redirect. Bodies are forms.
func (g *guarded) fetch(client *http.Client, method, path, form string, header ...string) (status int, body string) {
	g.t.Helper()
	g.attempts++
	req, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.app.AdminAddr()+path, strings.NewReader(form))
	must(g.t, err)
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	must(g.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(g.t, err)
	return resp.StatusCode, string(text)
}

func (g *guarded) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	must(g.t, err)
	return &http.Client{Jar: jar, Transport: &g.http, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

var csrfField = regexp.MustCompile(`name="csrf" value="(\w+)"`)

// signIn signs a browser in with a token, and returns the value that its forms need; "" if it was refused.
func (g *guarded) signIn(b *http.Client, token string) (csrf string) {
	g.t.Helper()
	_, page := g.fetch(b, http.MethodGet, "/login", "")
	login := csrfField.FindStringSubmatch(page)
	if login == nil {
		g.t.Fatalf("the login form has no CSRF token: %s", page)
	}
	if status, _ := g.fetch(b, http.MethodPost, "/login", url.Values{"token": {token}, "csrf": {login[1]}, "next": {"/"}}.Encode()); status != http.StatusSeeOther {
		return ""
	}
	_, page = g.fetch(b, http.MethodGet, "/", "")
	if found := csrfField.FindStringSubmatch(page); found != nil {
		return found[1]
	}
	return ""
}

// TestNobodySeesMoreThanTheTokenAllows asks for everything with every kind of token, in a header and as a browser. It also shows that who may see
// something does see it, so that the attempts are not refused for another reason.
func TestNobodySeesMoreThanTheTokenAllows(t *testing.T) {
	g := startGuarded(t)
	paths := g.addresses()
	seen := map[string]string{}
	for _, v := range g.visitors {
		b := g.browser()
		signedIn := g.signIn(b, v.token) != ""
		if signedIn == (v.name == withoutToken) {
			t.Errorf("%s: signed in: %t", v.name, signedIn)
		}
		for _, path := range paths {
			_, byToken := g.fetch(g.browser(), http.MethodGet, path, "", "Authorization", "Bearer "+v.token)
			_, byCookie := g.fetch(b, http.MethodGet, path, "")
			for _, text := range v.never {
				asked := strings.Contains(path, text) // an error may repeat the address
				if strings.Contains(byToken, text) && !asked || strings.Contains(byCookie, text) && !asked {
					t.Errorf("%s sees %s at %s", v.name, text, path)
				}
			}
			seen[v.name] += byToken + byCookie
		}
	}
	for name, words := range map[string][]string{
		"auditor": {wordsOfA, wordsOfB}, "auditor of a": {wordsOfA, keyOfA}, "operator of a": {wordsOfA}, "viewer of a": {keyOfA, g.a.session}, "viewer": {keyOfA, keyOfB},
	} {
		for _, text := range words {
			if !strings.Contains(seen[name], text) {
				t.Errorf("%s does not see %s", name, text)
			}
		}
	}
	if want := 200; g.attempts < want {
		t.Errorf("%d attempts, want at least %d", g.attempts, want)
	}
	t.Logf("%d attempts", g.attempts)
}

// TestNobodyChangesMoreThanTheTokenAllows tries every change with every kind of token, and then forms that no page of ours has sent.
func TestNobodyChangesMoreThanTheTokenAllows(t *testing.T) {
	g := startGuarded(t)
	forms := func(p place, tenant string) []string {
		page := "/s/" + p.session
		return []string{page + "/delete", page + "/" + p.thread + "/condense", "/delete?key=" + map[string]string{"alpha": keyOfA, "beta": keyOfB}[tenant], "/condensing?mode=off&for=2h&tenant=" + tenant}
	}
	post := func(b *http.Client, address, csrf string, header ...string) int {
		path, query, _ := strings.Cut(address, "?")
		values, err := url.ParseQuery(query)
		must(t, err)
		values.Set("csrf", csrf)
		status, _ := g.fetch(b, http.MethodPost, path, values.Encode(), header...)
		return status
	}
	for _, v := range g.visitors {
		b := g.browser()
		csrf := g.signIn(b, v.token)
		targets := append(forms(g.b, "beta"), "/condensing?mode=off&for=2h&tenant=")
		if !v.changes {
			targets = append(targets, forms(g.a, "alpha")...)
		}
		if v.name == "auditor" || v.name == "viewer" {
			targets = append(targets, "/condensing?mode=off&for=2h&tenant=alpha")
		}
		for _, form := range targets {
			if status := post(b, form, csrf); status < 400 && !(v.name == withoutToken && status == http.StatusSeeOther) {
				t.Errorf("%s: POST %s: %d", v.name, form, status)
			}
		}
		for _, api := range []string{"DELETE /api/v1/sessions/" + g.b.session, "DELETE /api/v1/sessions?tenant=beta", "DELETE /api/v1/sessions?key=" + keyOfB, "POST /api/v1/compact", "POST " + g.b.url("/condense"),
			"PUT /api/v1/condensing", "DELETE /api/v1/condensing", "PUT /api/v1/tenants/beta/condensing", "DELETE /api/v1/tenants/beta/condensing"} {
			method, path, _ := strings.Cut(api, " ")
			status, body := g.fetch(g.browser(), method, path, "", "Authorization", "Bearer "+v.token, "X-Dewpoint-Admin", "1")
			if status < 400 && body != `{"deleted":0,"more":false}`+"\n" {
				t.Errorf("%s: %s: %d %s", v.name, api, status, body)
			}
		}
	}
	operator := g.browser()
	csrf := g.signIn(operator, "token of operator of a")
	for name, forged := range map[string][]string{"none": {""}, "another": {strings.Repeat("0", 64)}, "right, other site": {csrf, "Origin", "https://evil.example"}, "right, no origin": {csrf, "Origin", "null"}, "right, cross-site": {csrf, "Sec-Fetch-Site", "cross-site"}} {
		if status := post(operator, forms(g.a, "alpha")[0], forged[0], forged[1:]...); status != http.StatusForbidden {
			t.Errorf("a form with the CSRF token %s: %d, want 403", name, status)
		}
	}
	for _, p := range []place{g.a, g.b} {
		if a := g.call(http.MethodGet, "/api/v1/sessions/"+p.session); a.StatusCode != http.StatusOK {
			t.Fatalf("a session was deleted: %d", a.StatusCode)
		}
	}
	if status := post(operator, forms(g.a, "alpha")[0], csrf); status != http.StatusSeeOther {
		t.Errorf("the operator cannot delete a session: %d", status)
	}
	g.call(http.MethodGet, "/api/v1/sessions/"+g.a.session).fails(t, http.StatusNotFound, "session_not_found")
	t.Logf("%d attempts", g.attempts)
}

// TestForgedSessionsAreRefused sends cookies that no login has made.
func TestForgedSessionsAreRefused(t *testing.T) {
	g := startGuarded(t)
	b := g.browser()
	g.signIn(b, token)
	at, err := url.Parse("http://" + g.app.AdminAddr() + "/")
	must(t, err)
	cookies := b.Jar.Cookies(at)
	i := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return c.Name == "dewpoint_admin" })
	if i < 0 {
		t.Fatal("the login sets no cookie")
	}
	real := cookies[i].Value
	try := func(value string) int {
		status, _ := g.fetch(g.browser(), http.MethodGet, "/s/"+g.a.session, "", "Cookie", "dewpoint_admin="+value)
		return status
	}
	if status := try(real); status != http.StatusOK {
		t.Fatalf("the real cookie: %d", status)
	}
	for n := range len(real) - 1 { // the last character has unused bits
		changed := []byte(real)
		changed[n] = map[bool]byte{true: 'B', false: 'A'}[changed[n] == 'A']
		if status := try(string(changed)); status != http.StatusSeeOther {
			t.Errorf("a cookie with another character %d: %d", n, status)
		}
	}
	for _, forged := range []string{"", "x", real[:len(real)/2], real + real, strings.Repeat("A", len(real))} {
		if status := try(forged); status != http.StatusSeeOther {
			t.Errorf("the cookie %q: %d", forged, status)
		}
	}
}

// TestContentOnLoopbackNeedsTheLink checks a port without tokens: figures for everyone on the machine, content for who has the link.
func TestContentOnLoopbackNeedsTheLink(t *testing.T) {
	r := start(t, nil)
	g := &guarded{rig: r}
	g.a = r.grow(turns(wordsOfA, 13), 1)
	step := "/s/" + g.a.session + "/" + g.a.thread + "/12"
	stranger, owner := g.browser(), g.browser()
	for _, path := range append([]string{"/", "/sessions", "/s/" + g.a.session, step, step + "/m/3", g.a.url("/condensations")}, g.condensations(g.a)...) {
		if status, body := g.fetch(stranger, http.MethodGet, path, ""); status != http.StatusOK || strings.Contains(body, wordsOfA) {
			t.Errorf("a stranger at %s: %d, content: %t", path, status, strings.Contains(body, wordsOfA))
		}
	}
	for _, path := range []string{g.a.url("/view"), g.a.url("/diff"), g.a.url("/events?content=true")} {
		if status, body := g.fetch(stranger, http.MethodGet, path, ""); status != http.StatusForbidden || !strings.Contains(body, "content_needs_token") {
			t.Errorf("a stranger at %s: %d %s", path, status, body)
		}
	}
	if status, _ := g.fetch(owner, http.MethodGet, step+"?token=wrong", ""); status != http.StatusSeeOther {
		t.Errorf("a wrong link: %d", status)
	}
	if _, body := g.fetch(owner, http.MethodGet, step, ""); strings.Contains(body, wordsOfA) {
		t.Error("a wrong link shows content")
	}
	if status, _ := g.fetch(owner, http.MethodGet, step+"?token="+r.app.AdminToken(), ""); status != http.StatusSeeOther {
		t.Errorf("the link: %d, want a redirect to the address without the token", status)
	}
	if _, body := g.fetch(owner, http.MethodGet, step, ""); !strings.Contains(body, wordsOfA) {
		t.Error("the link shows no content")
	}
}

// TestChangesOnLoopbackNeedTheLink checks a port without tokens: who has no link changes nothing, neither through the API nor with forms.
func TestChangesOnLoopbackNeedTheLink(t *testing.T) {
	r := start(t, nil)
	g := &guarded{rig: r}
	g.a = r.ask(turns(wordsOfA, 3))
	stranger := g.browser()
	for _, api := range []string{"DELETE /api/v1/sessions/" + g.a.session, "DELETE /api/v1/sessions?tenant=default", "POST /api/v1/compact", "POST " + g.a.url("/condense"),
		"PUT " + g.a.url("/record"), "PUT /api/v1/condensing", "DELETE /api/v1/condensing", "PUT /api/v1/tenants/default/condensing", "DELETE /api/v1/tenants/default/condensing"} {
		method, path, _ := strings.Cut(api, " ")
		if status, body := g.fetch(stranger, method, path, "", "X-Dewpoint-Admin", "1"); status != http.StatusForbidden || !strings.Contains(body, `"change_needs_token"`) {
			t.Errorf("a stranger's %s: %d %s", api, status, body)
		}
	}
	for _, form := range []string{"/s/" + g.a.session + "/delete", "/condensing"} {
		if status, body := g.fetch(stranger, http.MethodPost, form, "csrf="); status != http.StatusForbidden {
			t.Errorf("a stranger's form %s: %d %s", form, status, body)
		}
	}
	if a := r.call(http.MethodGet, "/api/v1/sessions/"+g.a.session); a.StatusCode != http.StatusOK {
		t.Fatalf("the session is gone: %d", a.StatusCode)
	}
	if a := r.call(http.MethodDelete, "/api/v1/sessions/"+g.a.session); a.StatusCode != http.StatusNoContent {
		t.Errorf("with the token: %d %s", a.StatusCode, a.body)
	}
}

// TestReadingTitlesIsNoted: titles are what people typed. A list is noted once for a tenant, and each deleted session has an entry of its own.
func TestReadingTitlesIsNoted(t *testing.T) {
	g := startGuarded(t)
	auditor := []string{"Authorization", "Bearer token of auditor of a"}
	for range 2 {
		g.fetch(g.browser(), http.MethodGet, "/sessions", "", auditor...)
		g.fetch(g.browser(), http.MethodGet, "/s/"+g.a.session, "", auditor...)
	}
	g.fetch(g.browser(), http.MethodGet, "/sessions", "", "Authorization", "Bearer token of viewer of a")
	g.fetch(g.browser(), http.MethodDelete, "/api/v1/sessions?tenant=alpha", "", "Authorization", "Bearer token of operator of a", "X-Dewpoint-Admin", "1")
	_, log := g.fetch(g.browser(), http.MethodGet, "/activity/export", "", "Authorization", "Bearer token of operator of a")
	var got []string
	for line := range strings.Lines(log) {
		var e admin.AuditEntry
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Tenant != "alpha" {
			t.Errorf("no tenant in %s", line)
		}
		if e.Who != "admin.token" && (!e.Change || e.On == "/s/"+g.a.session) { // the first one is this test itself
			got = append(got, e.Who+" "+e.Did+" "+e.On)
		}
	}
	slices.Sort(got)
	want := []string{
		"auditor of a read content /s/" + g.a.session, "auditor of a read content /sessions?tenant=alpha",
		"operator of a deleted a session of a tenant or key /s/" + g.a.session,
	}
	if !slices.Equal(got, want) {
		t.Errorf("noted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReadingContentIsNoted checks the audit log: who read content and who changed what, kept beyond a restart, and for operators only.
func TestReadingContentIsNoted(t *testing.T) {
	g := startGuarded(t)
	read := "/s/" + g.a.session
	auditor := []string{"Authorization", "Bearer token of auditor of a"}
	for range 2 { // noted once
		g.fetch(g.browser(), http.MethodGet, read+"/"+g.a.thread+"/12", "", auditor...)
		g.fetch(g.browser(), http.MethodGet, g.a.url("/view"), "", auditor...)
	}
	g.fetch(g.browser(), http.MethodGet, read+"/"+g.a.thread+"/12", "", "Authorization", "Bearer token of viewer of a")
	operator := g.browser()
	g.fetch(operator, http.MethodPost, read+"/"+g.a.thread+"/condense", "csrf="+g.signIn(operator, "token of operator of a"))
	g.restart()
	_, log := g.fetch(g.browser(), http.MethodGet, "/activity/export", "", "Authorization", "Bearer "+token)
	var entries []admin.AuditEntry
	for line := range strings.Lines(log) {
		var e admin.AuditEntry
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Who != "admin.token" { // this test itself
			entries = append(entries, e)
		}
	}
	if len(entries) != 3 {
		t.Fatalf("%d entries, want that of the reader and two of the operator: %s", len(entries), log)
	}
	if e := entries[1]; e.Who != "operator of a" || e.Did != "read content" || e.On != "/sessions?tenant=alpha" { // the list behind the login
		t.Errorf("the entry of the list is %+v", e)
	}
	if e := entries[2]; e.Who != "auditor of a" || e.Did != "read content" || e.On != read || e.Tenant != "alpha" || e.Change || e.From == "" || e.Time.IsZero() {
		t.Errorf("the reader's entry is %+v", e)
	}
	if e := entries[0]; e.Who != "operator of a" || e.Did != "asked for a condensation" || !e.Change || e.Role != admin.RoleOperator {
		t.Errorf("the operator's entry is %+v", e)
	}
}
