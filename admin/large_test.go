package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// slowForwarder signals each call of Show and blocks it until the test lets it return.
type slowForwarder struct{ asked, answer chan struct{} }

func (f slowForwarder) Show(engine.Past) (engine.Shown, error) {
	f.asked <- struct{}{}
	<-f.answer
	return engine.Shown{}, nil
}

func (f slowForwarder) Experiment(context.Context, string, float64) (session.Experiment, error) {
	return session.Experiment{}, nil
}

func (f slowForwarder) Explain(context.Context, engine.Question) (engine.Explanation, error) {
	return engine.Explanation{}, nil
}

func (f slowForwarder) Unseal(context.Context, string, string) (string, error) { return "", nil }

// TestOneReadsMessagesAtATime checks that concurrent requests do not read messages at the same time, which bounds memory.
func TestOneReadsMessagesAtATime(t *testing.T) {
	store, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db", Content: true})
	must(t, err)
	defer store.Close()
	must(t, store.Append(t.Context(), session.Batch{Thread: session.Thread{ID: "t", Session: "s", Purpose: session.PurposeMain}}))
	slow := slowForwarder{make(chan struct{}), make(chan struct{})}
	api := admin.New(admin.Options{Store: store, Archive: store, Settings: noSettings{}, Forwarder: slow, Metrics: http.NotFoundHandler(), Health: http.NotFoundHandler(), MaxBytes: 1 << 20})
	ask := func(ctx context.Context, path string) int {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/sessions/s"+path, nil)
		req.Host = "localhost"
		api.ServeHTTP(w, req)
		return w.Code
	}
	first := make(chan int)
	go func() { first <- ask(t.Context(), "/threads/t/view") }()
	<-slow.asked
	left, leave := context.WithCancel(t.Context())
	leave()
	if status := ask(left, "/threads/t/diff"); status != http.StatusServiceUnavailable {
		t.Errorf("next to another: status %d", status)
	}
	if status := ask(t.Context(), ""); status != http.StatusOK {
		t.Errorf("what reads no messages: status %d", status)
	}
	slow.answer <- struct{}{}
	if status := <-first; status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	go func() { <-slow.asked; slow.answer <- struct{}{} }()
	if status := ask(t.Context(), "/threads/t/view"); status != http.StatusOK {
		t.Errorf("afterwards: status %d", status)
	}
}

// TestLargeThread checks that the bytes read for a response are bounded by limits.bytes_in_flight, and that a larger thread
// can be read in pages.
func TestLargeThread(t *testing.T) {
	r := start(t, func(c *config.Config) { c.Limits.MaxBody, c.Limits.BytesInFlight = 8<<10, 16<<10 })
	conversation := turns("ships", 12)
	p := r.ask(conversation[:6])
	r.get(p.url("/view"), new(any))
	p = r.ask(conversation)
	r.call(http.MethodGet, p.url("/view")).fails(t, http.StatusConflict, "thread_too_large")
	r.get(p.url("/events?content=true&limit=5"), new(any))
}
