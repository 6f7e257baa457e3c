package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// roundTripper sends a request by a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestMarks: a request that was sent with marks is recognised by every process with the secret, and by the process that sent it before it knew the
// secret. To others its marks are one more to pass on, of which there are eight at most.
func TestMarks(t *testing.T) {
	known := func(s string) *Marks { return NewMarks(func() session.Secret { return session.Secret(s) }) }
	early := known("")
	sent := func(m *Marks, earlier ...string) (via string) {
		request, err := http.NewRequestWithContext(withMarks(t.Context(), earlier), http.MethodGet, "http://up", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
			via = r.Header.Get(markHeader)
			return nil, nil //nolint:nilnil // only the request matters
		})).RoundTrip(request)
		if len(request.Header) > 0 {
			t.Error("the caller's request was changed")
		}
		return via
	}
	ours := sent(early)
	early.secret = func() session.Secret { return session.Secret("a") }
	f := func(m *Marks, via string, passed int, want bool) {
		t.Helper()
		var h fasthttp.RequestHeader
		h.Set(markHeader, via)
		marks, ok := m.passed(&h)
		if ok != want || len(marks) != passed {
			t.Errorf("%q: %v, %v", via, marks, ok)
		}
	}
	f(early, ours, 0, false)                               // before the secret was known
	f(known("a"), sent(early), 0, false)                   // a replica
	f(known("a"), sent(known("b"), sent(early)), 0, false) // through another deployment
	f(known("b"), sent(known("a")), 1, true)
	f(known("a"), strings.Repeat("x.y,", 8), 8, true)
	f(known("a"), strings.Repeat("x.y,", 9), 0, false)
	f(known("a"), strings.Repeat("x", 97)+",not a mark,,"+"\"", 0, true)
	f(nil, ours, 0, true)
}
