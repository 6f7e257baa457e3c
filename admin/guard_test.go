package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

const token = "a-long-admin-token"

// TestAttacks sends requests as a browser would send them for a hostile page, or as a stranger on the network would.
func TestAttacks(t *testing.T) {
	open := start(t, func(c *config.Config) { c.Admin.Hosts = []string{"dewpoint.internal"} })
	locked := start(t, func(c *config.Config) { c.Admin.Token = token })
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	list, gone := "/api/v1/sessions", "/api/v1/sessions/nobody"
	for name, c := range map[string]struct {
		r            *rig
		method, path string
		header       []string
		status       int
		code         string // empty: accepted
	}{
		"plain":                      {open, get, list, nil, 200, ""},
		"localhost":                  {open, get, list, []string{"Host", "LOCALHOST:9090"}, 200, ""},
		"IPv6 loopback":              {open, get, list, []string{"Host", "[::1]:9090"}, 200, ""},
		"configured host":            {open, get, list, []string{"Host", "dewpoint.internal"}, 200, ""},
		"rebound name":               {open, get, list, []string{"Host", "evil.example"}, 421, "unknown_host"},
		"rebound name, metrics":      {open, get, "/metrics", []string{"Host", "evil.example"}, 421, "unknown_host"},
		"rebound name, same origin":  {open, get, list, []string{"Host", "evil.example:9090", "Origin", "http://evil.example:9090", "Sec-Fetch-Site", "same-origin"}, 421, "unknown_host"},
		"rebound name, delete":       {open, del, gone, []string{"Host", "evil.example"}, 421, "unknown_host"},
		"name that begins right":     {open, get, list, []string{"Host", "localhost.evil.example"}, 421, "unknown_host"},
		"address that begins right":  {open, get, list, []string{"Host", "127.0.0.1.evil.example"}, 421, "unknown_host"},
		"other address":              {open, get, list, []string{"Host", "10.0.0.1:9090"}, 421, "unknown_host"},
		"trailing dot":               {open, get, list, []string{"Host", "localhost."}, 421, "unknown_host"},
		"other site's fetch":         {open, get, list, []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
		"other site's fetch, delete": {open, del, gone, []string{"Origin", "https://evil.example"}, 403, "cross_origin"},
		"other port's page":          {open, get, list, []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, 403, "cross_origin"},
		"other port, no metadata":    {open, get, list, []string{"Origin", "http://127.0.0.1:1"}, 403, "cross_origin"},
		"sandboxed page":             {open, get, list, []string{"Origin", "null"}, 403, "cross_origin"},
		"image or script tag":        {open, get, list, []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_origin"},
		"image tag, metrics":         {open, get, "/metrics", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_origin"},
		"another port's image tag":   {open, get, list, []string{"Sec-Fetch-Site", "same-site"}, 403, "cross_origin"},
		"typed by the user":          {open, get, list, []string{"Sec-Fetch-Site", "none"}, 200, ""},
		"form":                       {open, post, gone + "/threads/a/condense", []string{"X-Dewpoint-Admin", "", "Content-Type", "application/x-www-form-urlencoded"}, 403, "header_required"},
		"form with text":             {open, post, gone + "/threads/a/condense", []string{"X-Dewpoint-Admin", "", "Content-Type", "text/plain; charset=application/json"}, 403, "header_required"},
		"delete without the header":  {open, del, gone, []string{"X-Dewpoint-Admin", ""}, 403, "header_required"},
		"delete with JSON":           {open, del, gone, []string{"X-Dewpoint-Admin", "", "Content-Type", "application/json; charset=utf-8"}, 404, "session_not_found"},
		"preflight":                  {open, http.MethodOptions, gone, []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "DELETE", "Access-Control-Request-Headers", "x-dewpoint-admin"}, 403, "cross_origin"},
		"preflight, no origin":       {open, http.MethodOptions, gone, nil, 405, "method_not_allowed"},
		"overridden method":          {open, post, gone, []string{"X-HTTP-Method-Override", "DELETE"}, 405, "method_not_allowed"},

		"token":                       {locked, get, list, nil, 200, ""},
		"token by any name":           {locked, get, list, []string{"Host", "dewpoint.example"}, 200, ""},
		"token, scheme in lower case": {locked, get, list, []string{"Authorization", "bearer " + token}, 200, ""},
		"no token":                    {locked, get, list, []string{"Authorization", ""}, 401, "token_required"},
		"no token, metrics":           {locked, get, "/metrics", []string{"Authorization", ""}, 401, "token_required"},
		"no token, unknown path":      {locked, get, "/secret", []string{"Authorization", ""}, 401, "token_required"},
		"no token, document":          {locked, get, "/api/v1/openapi.yaml", []string{"Authorization", ""}, 401, "token_required"},
		"wrong token":                 {locked, get, list, []string{"Authorization", "Bearer wrong"}, 401, "token_required"},
		"half a token":                {locked, get, list, []string{"Authorization", "Bearer " + token[:5]}, 401, "token_required"},
		"token without scheme":        {locked, get, list, []string{"Authorization", token}, 401, "token_required"},
		"token as Basic":              {locked, get, list, []string{"Authorization", "Basic " + token}, 401, "token_required"},
		"token in the query":          {locked, get, list + "?token=" + token, []string{"Authorization", ""}, 401, "token_required"},
		"token, other site":           {locked, get, list, []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_origin"},
		"token, form":                 {locked, post, gone, []string{"X-Dewpoint-Admin", ""}, 403, "header_required"},
	} {
		a := c.r.call(c.method, c.path, c.header...)
		if c.code == "" && a.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
		if c.code != "" {
			a.fails(t, c.status, c.code)
		}
		sealed(t, name, a)
	}
	if a := locked.call(get, "/healthz", "Authorization", "", "Host", "10.1.2.3"); a.StatusCode != http.StatusOK {
		t.Errorf("health asks for more than it should: %d %s", a.StatusCode, a.body)
	}
}

// sealed checks the security headers of a response, and that it sets no CORS header or cookie.
func sealed(t *testing.T, name string, a answer) {
	t.Helper()
	for header, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := a.Header.Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", name, header, got, want)
		}
	}
	for header := range a.Header {
		if strings.HasPrefix(header, "Access-Control-") || header == "Set-Cookie" {
			t.Errorf("%s: header %s", name, header)
		}
	}
	if asked := a.Header.Get("WWW-Authenticate"); (a.StatusCode == http.StatusUnauthorized) != (asked == "Bearer") {
		t.Errorf("%s: %d with WWW-Authenticate %q", name, a.StatusCode, asked)
	}
}

func TestBodiesAreRefused(t *testing.T) {
	r := start(t, nil)
	for body, status := range map[string]int{"": 404, " {} ": 404, `{"a":1}`: 400, strings.Repeat(" ", 1<<20): 404} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+r.app.AdminAddr()+"/api/v1/sessions/nobody", strings.NewReader(body))
		must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+r.app.AdminToken())
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != status {
			t.Errorf("%.20q: %d", body, resp.StatusCode)
		}
	}
}
