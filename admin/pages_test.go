package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

func TestAnyPageNumberShowsTheList(t *testing.T) {
	r := start(t, nil)
	p := r.ask(turns("ships", 3))
	for _, page := range []string{"-1", "0", "1", "2", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "x"} {
		if a := r.call(http.MethodGet, "/sessions?page="+page); a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), p.session) {
			t.Errorf("page %s: %d, shows the session: %t", page, a.StatusCode, strings.Contains(string(a.body), p.session))
		}
	}
}

// panickySettings are settings that cannot be read.
type panickySettings struct{ noSettings }

func (panickySettings) Tenants() []admin.Tenant { panic("a defect") }

func TestAPanicOfAPageIsReportedAndShownAsAnError(t *testing.T) {
	store, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db"})
	must(t, err)
	defer store.Close()
	var reported []error
	pages := admin.New(admin.Options{Store: store, Archive: store, Settings: panickySettings{}, Metrics: http.NotFoundHandler(), Health: http.NotFoundHandler(), OnError: func(err error) { reported = append(reported, err) }})
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sessions", nil)
	req.Host = "localhost"
	pages.ServeHTTP(w, req)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "It failed") || strings.Contains(w.Body.String(), "a defect") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(reported) != 1 || !strings.Contains(reported[0].Error(), "a defect") || !strings.Contains(reported[0].Error(), "panickySettings") {
		t.Errorf("reported %v", reported)
	}
}

// TestASessionGetsItsTitleWhenAPersonFirstTypes: it does not matter that the session was looked at before.
func TestASessionGetsItsTitleWhenAPersonFirstTypes(t *testing.T) {
	r := start(t, nil)
	history := []string{say("system", "You help."), say("assistant", "What shall I do?")}
	first := r.ask(history, "X-Dewpoint-Session", "nightly")
	if a := r.call(http.MethodGet, "/s/"+first.session); a.StatusCode != http.StatusOK || strings.Contains(string(a.body), "Find the leaking valve") {
		t.Fatalf("before: %d %s", a.StatusCode, a.body)
	}
	second := r.ask(append(history, say("user", "Find the leaking valve.")), "X-Dewpoint-Session", "nightly")
	if second.session != first.session {
		t.Fatalf("another session: %+v, %+v", first, second)
	}
	if a := r.call(http.MethodGet, "/s/"+first.session); !strings.Contains(string(a.body), "<h1>Find the leaking valve") {
		t.Errorf("the session has no title: %.1500s", a.body)
	}
}
