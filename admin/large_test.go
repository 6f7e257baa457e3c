package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

func (f slowForwarder) Experiment(context.Context, string, session.Holdout) (session.Experiment, error) {
	return session.Experiment{}, nil
}

func (f slowForwarder) Pending(context.Context, session.ThreadID) (engine.Pending, error) {
	return engine.Pending{}, nil
}

func (f slowForwarder) Correct(context.Context, session.ThreadID, string, string, string) (engine.Pending, error) {
	return engine.Pending{}, nil
}

func (f slowForwarder) Spending(context.Context, engine.Budget, time.Time) ([]engine.Spending, error) {
	return nil, nil
}

func (f slowForwarder) Explain(context.Context, engine.Question) (engine.Explanation, error) {
	return engine.Explanation{}, nil
}

func (f slowForwarder) Read(string, []byte) (session.Content, error) { return session.Content{}, nil }

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

// countingStore counts the bytes of payloads that are read.
type countingStore struct {
	session.Backend
	read int
}

func (s *countingStore) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	events, err := s.Backend.Events(ctx, id, from, limit)
	for _, e := range events {
		s.read += len(e.Payload)
	}
	return events, err
}

// TestLargeThreadOfSharedContent checks the same for a thread with few entries that refer to the content of another thread.
func TestLargeThreadOfSharedContent(t *testing.T) {
	inner, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db", Content: true})
	must(t, err)
	defer inner.Close()
	const n, size = 5000, 1 << 10
	holder := session.Batch{Thread: session.Thread{ID: "holder", Session: "s", Len: n}}
	sharing := session.Batch{Thread: session.Thread{ID: "sharing", Session: "s", Len: n, Shares: []session.ThreadID{"holder"}}}
	var chain session.Hash
	for i := range n {
		e := session.Event{Pos: i + 1, Kind: session.User, Digest: session.Hash{1, byte(i), byte(i >> 8)}, Payload: bytes.Repeat([]byte("1"), size)}
		chain = session.Next(chain, e.Digest)
		e.Chain = chain
		holder.Events = append(holder.Events, e)
		e.Payload, e.Ref = nil, session.EntryID{Thread: "holder", Seq: uint64(i) + 1}
		sharing.Events = append(sharing.Events, e)
	}
	must(t, inner.Append(t.Context(), holder))
	must(t, inner.Append(t.Context(), sharing))
	store := &countingStore{Backend: inner}
	api := admin.New(admin.Options{Store: store, Archive: inner, Settings: noSettings{}, Metrics: http.NotFoundHandler(), Health: http.NotFoundHandler(), MaxBytes: 256 << 10, OnError: func(err error) { t.Error(err) }})
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/sessions/s/threads/sharing"+path, nil)
		req.Host = "localhost"
		api.ServeHTTP(w, req)
		return w
	}
	if w := ask("/view"); w.Code != http.StatusConflict || store.read > 2<<20 {
		t.Errorf("the view: status %d after reading %d KB", w.Code, store.read>>10)
	}
	if w := ask("/events?content=true&limit=500"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "page_too_large") {
		t.Errorf("a large page: status %d, %.200s", w.Code, w.Body)
	}
	if w := ask("/events?limit=500"); w.Code != http.StatusOK {
		t.Errorf("a page without messages: status %d", w.Code)
	}
	from, seen := uint64(1), 0
	for from > 0 {
		store.read = 0
		var page struct {
			Events []json.RawMessage
			Next   uint64
		}
		must(t, json.Unmarshal(ask(fmt.Sprintf("/events?content=true&limit=100&from=%d", from)).Body.Bytes(), &page))
		if len(page.Events) > 163 || store.read > 256<<10 {
			t.Fatalf("a page of %d events, for which %d KB were read", len(page.Events), store.read>>10)
		}
		from, seen = page.Next, seen+len(page.Events)
	}
	if seen != n {
		t.Errorf("%d events in pages, want %d", seen, n)
	}
}
