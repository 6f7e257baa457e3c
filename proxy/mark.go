package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// markHeader lists the marks of the proxies that a request has passed, oldest first, separated by commas. It is the only one of our headers
// that goes upstream.
const markHeader = "X-Dewpoint-Via"

const (
	maxMarks   = 8  // of a request: more proxies in a row than this are a loop
	maxMarkLen = 96 // bytes. Longer ones are no marks, and are dropped
)

// Marks recognises requests that have passed this proxy before, because its upstream leads back to it. Every request that goes upstream
// carries a mark: a nonce, and a hash of it that is keyed by the secret, so that replicas recognise each other's marks, and no others.
// Marks is safe for concurrent use.
type Marks struct {
	secret func() session.Secret // returns the deployment's secret, empty while it is not known
	own    session.Secret        // of this process, used until the deployment's is known
	nonce  string                // of this process
}

// NewMarks returns Marks with a deployment's secret, which may be empty while it is not known: until then, only this process recognises
// its marks.
func NewMarks(secret func() session.Secret) *Marks {
	return &Marks{secret: secret, own: session.Secret(rand.Text()), nonce: rand.Text()}
}

// mark returns the mark of this process.
func (m *Marks) mark() string {
	secret := m.secret()
	if len(secret) == 0 {
		secret = m.own
	}
	return m.nonce + "." + secret.Mark(m.nonce)
}

// ours reports whether a mark was made with the secret, or by this process before it knew the secret.
func (m *Marks) ours(mark string) bool {
	nonce, hash, _ := strings.Cut(mark, ".")
	made := func(by session.Secret) bool {
		return len(by) > 0 && subtle.ConstantTimeCompare([]byte(by.Mark(nonce)), []byte(hash)) == 1
	}
	return made(m.secret()) || made(m.own)
}

// passed returns the marks of a client's request, which are to be passed on. It is not ok if the request has been here before, or may have.
func (m *Marks) passed(h *fasthttp.RequestHeader) (marks []string, ok bool) {
	if m == nil {
		return nil, true
	}
	for _, line := range h.PeekAll(markHeader) {
		for mark := range strings.SplitSeq(string(line), ",") {
			mark = strings.TrimSpace(mark)
			switch {
			case len(mark) > maxMarkLen || !token(mark):
			case len(marks) == maxMarks || m.ours(mark):
				return nil, false
			default:
				marks = append(marks, mark)
			}
		}
	}
	return marks, true
}

// marksKey is the context key of the marks of a client's request.
type marksKey struct{}

// withMarks returns a context whose requests carry these marks, in addition to our own.
func withMarks(ctx context.Context, marks []string) context.Context {
	if len(marks) == 0 {
		return ctx
	}
	return context.WithValue(ctx, marksKey{}, marks)
}

// Transport returns a RoundTripper that marks each request and sends it by another one.
func (m *Marks) Transport(by http.RoundTripper) http.RoundTripper { return marking{by, m} }

type marking struct {
	http.RoundTripper
	marks *Marks
}

// RoundTrip implements http.RoundTripper. It sends a copy of the request, since a RoundTripper must not change it.
func (t marking) RoundTrip(r *http.Request) (*http.Response, error) {
	marks, _ := r.Context().Value(marksKey{}).([]string)
	marked := *r
	marked.Header = maps.Clone(r.Header)
	marked.Header.Set(markHeader, strings.Join(append(slices.Clip(marks), t.marks.mark()), ", "))
	return t.RoundTripper.RoundTrip(&marked)
}
