package admin_test

import (
	"net/http"
	"testing"
)

// TestChangesAreLogged checks that deletions and condensation requests are logged, and that reads and refused requests are not.
func TestChangesAreLogged(t *testing.T) {
	r := start(t, nil)
	p := r.ask(turns("ships", 3))
	r.call(http.MethodGet, "/api/v1/sessions/"+p.session)
	r.call(http.MethodDelete, "/api/v1/sessions/nobody")
	for _, a := range []answer{r.call(http.MethodPost, p.url("/condense")), r.call(http.MethodDelete, "/api/v1/sessions/"+p.session)} {
		if a.StatusCode/100 != 2 {
			t.Fatalf("%s: %d %s", a.Request.URL, a.StatusCode, a.body)
		}
	}
	want := []string{"POST " + p.url("/condense"), "DELETE /api/v1/sessions/" + p.session}
	lines := r.logs.FilterMessage("admin change").All()
	for i, line := range lines {
		fields := line.ContextMap()
		method, _ := fields["method"].(string)
		path, _ := fields["path"].(string)
		if i < len(want) && method+" "+path != want[i] || fields["from"] == "" {
			t.Errorf("line %d: %v", i, fields)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
}
