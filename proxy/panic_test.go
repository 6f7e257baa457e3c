package proxy_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// panicking is what a server is made of, broken.
type panicking struct{ quarters }

func (panicking) Registry(context.Context) (*session.Registry, session.Store, session.Secret, error) {
	panic("registry")
}
func (panicking) Counter(string) proxy.Counter              { panic("counter") }
func (panicking) Name() string                              { return "panicking" }
func (panicking) Condense(condense.Input) condense.Decision { panic("condenser") }
func (panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close() // as every transport must
	panic("transport")
}

type panickingStore struct{ session.Store }

func (panickingStore) Append(context.Context, session.Batch) error { panic("append") }

func TestPanics(t *testing.T) {
	for name, s := range map[string]setup{
		"sessions":  {sessions: panicking{}},
		"tokens":    {tokens: panicking{}},
		"condenser": {condenser: panicking{}},
		"transport": {transport: panicking{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, s)
			r.atEnd("dewpoint_panics_total", 2)
			for range 2 {
				w := r.dial()
				w.post(hello)
				resp, body := w.answer(http.MethodPost)
				wantError(t, resp, body, 500, "internal_error")
				w.wantEnd()
			}
		})
	}
}

// TestPanicBeside is one in what is done beside the request, which must not take the process along.
func TestPanicBeside(t *testing.T) {
	r := newRig(t, setup{store: func(s session.Store) session.Store { return panickingStore{s} }})
	r.atEnd("dewpoint_panics_total", 2)
	for range 2 {
		r.wantUnchanged(hello)
	}
}

// TestShutdown ends while requests are under way: they are waited for, and told when that takes too long.
func TestShutdown(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, setup{upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) fakeupstream.Answer {
		if req.Text() == "hi" {
			return fakeupstream.Answer{Content: "waited for", Fault: fakeupstream.Fault{HoldHeaders: hold}}
		}
		return fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}}
	}}})
	first, second := r.dial(), r.dial()
	first.post(hello)
	_, err := r.up.Wait(guard(t), 1)
	must(t, err)
	second.post(messages(say("user", "not waited for")))
	_, err = r.up.Wait(guard(t), 2)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.server.Shutdown(ctx) }()
	close(hold)
	if resp, body := first.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, %s", resp.StatusCode, body)
	}
	cancel()
	resp, body := second.answer(http.MethodPost)
	wantError(t, resp, body, 503, "shutting_down")
	if err := <-ended; err == nil {
		t.Error("Shutdown does not tell that it gave up")
	}
}
