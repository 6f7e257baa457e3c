package fakeupstream

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Phase is how far the server has got with a request.
type Phase string

// The phases, in their order.
const (
	PhaseUpload  Phase = "upload"  // the request is being read
	PhaseHeaders Phase = "headers" // the request was read, no response header was sent
	PhaseBody    Phase = "body"    // the response header was sent
	PhaseDone    Phase = "done"    // the answer is complete, faults included
)

// Request is one received request. The Server's methods return copies; their slices and headers are shared and must not be changed.
type Request struct {
	Index  int // in order of arrival of the whole body, from 0
	Method string
	Path   string // with the query
	Header http.Header
	Body   []byte

	// Decoded from the body as far as possible; empty for other paths.
	Model    string
	Stream   bool
	Messages []json.RawMessage
	Tools    json.RawMessage
	Summary  bool // the summariser answers it

	PromptTokens     int
	CachedTokens     int
	CompletionTokens int // of the answer, as its usage says

	Status    int   // sent; 0 is none
	Phase     Phase // the current phase, or the phase in which the client left
	Cancelled bool  // the client left before it was done
	Judgement
}

// Judgement is what the server found wrong with a request.
type Judgement struct {
	Refused *APIError // why the server refused it, or nil; scripted errors are not refusals
	Dropped []string  // signatures of the reasoning that it dropped, because that belongs to another history
}

// Text returns the text of all messages, separated by empty lines.
func (r *Request) Text() string {
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = contentText(parse(m))
	}
	return strings.Join(texts, "\n\n")
}

// recorder keeps the requests. It is safe for concurrent use.
type recorder struct {
	keep int // number of requests; 0 is all

	mu        sync.Mutex
	requests  []*Request
	received  int
	ended     int
	cancelled int
	summaries int
	changed   sync.Cond // of mu
}

// add keeps a request and sets its index.
func (r *recorder) add(req *Request) {
	r.change(func() {
		req.Index = r.received
		r.received++
		r.requests = append(r.requests, req)
		if r.keep > 0 && len(r.requests) > r.keep {
			r.requests = slices.Delete(r.requests, 0, len(r.requests)-r.keep)
		}
	})
}

// change runs an update of the record or of a kept request, and wakes the waiters.
func (r *recorder) change(update func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	update()
	r.changed.Broadcast()
}

// end records that the handler returns.
func (r *recorder) end(req *Request) {
	r.change(func() {
		r.ended++
		if !req.Cancelled {
			req.Phase = PhaseDone
		}
	})
}

// cancel records that the client left, once. A completed request cannot be cancelled.
func (r *recorder) cancel(req *Request) {
	r.change(func() {
		if !req.Cancelled && req.Phase != PhaseDone {
			req.Cancelled = true
			r.cancelled++
		}
	})
}

// all returns copies of the kept requests. The caller holds the lock.
func (r *recorder) all() []Request {
	copies := make([]Request, len(r.requests))
	for i, req := range r.requests {
		copies[i] = *req
	}
	return copies
}

// wait blocks until the condition holds. It calls the condition with the lock held.
func (r *recorder) wait(ctx context.Context, holds func() bool) ([]Request, error) {
	stop := context.AfterFunc(ctx, func() { r.change(func() {}) })
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !holds() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.changed.Wait()
	}
	return r.all(), nil
}

// Requests returns every request received, in order (the newest Options.Keep of them).
func (s *Server) Requests() []Request {
	all, _ := s.record.wait(context.Background(), func() bool { return true })
	return all
}

// Wait blocks until n requests have been received, and returns the kept ones. The error is the context's.
func (s *Server) Wait(ctx context.Context, n int) ([]Request, error) {
	return s.record.wait(ctx, func() bool { return s.record.received >= n })
}

// WaitEnded is like Wait for n requests whose handlers have returned.
func (s *Server) WaitEnded(ctx context.Context, n int) ([]Request, error) {
	return s.record.wait(ctx, func() bool { return s.record.ended >= n })
}

// WaitCancelled is like Wait for n requests that their clients cancelled.
func (s *Server) WaitCancelled(ctx context.Context, n int) ([]Request, error) {
	return s.record.wait(ctx, func() bool { return s.record.cancelled >= n })
}

// WaitFor blocks until the kept requests meet the condition, and returns them. It calls the condition after every change; the
// condition must not call the server. The error is the context's.
func (s *Server) WaitFor(ctx context.Context, met func([]Request) bool) ([]Request, error) {
	return s.record.wait(ctx, func() bool { return met(s.record.all()) })
}

// SummariserCalls returns how many accepted requests went to the summariser.
func (s *Server) SummariserCalls() int {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.summaries
}
