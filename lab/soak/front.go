package soak

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// front stands before the fake upstream: it judges each request that is forwarded, and each call of a summariser.
type front struct {
	*soak
	fakes   map[upstream]*fakeupstream.Server
	tenants map[string]*tenant // by their key upstream

	server *httptest.Server

	mu     sync.Mutex
	chance *rand.Rand // of the summariser's faults
}

func startFront(s *soak) *front {
	f := &front{soak: s, tenants: map[string]*tenant{}, chance: s.chance(chanceSummariser), fakes: map[upstream]*fakeupstream.Server{}}
	keys := []string{cheapKey}
	for _, t := range s.tenants {
		f.tenants[t.outward] = t
		keys = append(keys, t.outward)
	}
	for _, c := range condensers() {
		u := c.upstream
		if f.fakes[u] != nil {
			continue
		}
		f.fakes[u] = fakeupstream.New(fakeupstream.Options{
			Strict: u.seals == "", Keep: 1, APIKeys: keys, Models: []string{modelMain, modelCheap}, Alternates: u.alternates, Seals: u.seals,
			IsSummary: func(r *fakeupstream.Request) bool { return r.Header.Get(exchangeHeader) == "" },
			Reply:     f.reply, Summarise: f.summarise,
		})
	}
	f.server = httptest.NewServer(f)
	return f
}

func (f *front) close() {
	for _, fake := range f.fakes {
		fake.Close() // first: it releases what is held
	}
	f.server.CloseClientConnections()
	f.server.Close()
}

// ServeHTTP judges a request and has it answered.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.tally.count(groupChecked, "requests that broke off on their way upstream")
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	id := r.Header.Get(exchangeHeader)
	if id == "" {
		f.serveSummariser(w, r, body)
		return
	}
	x := f.exchange(id)
	if x == nil {
		f.tally.count(groupChecked, "requests that came after their client had gone on")
		http.Error(w, "too late", http.StatusGone)
		return
	}
	d := x.deliver(body)
	defer d.end()
	f.judge(x, body, r.Header)
	to := x.family.tenant.condenser.upstream
	f.fakes[to].ServeHTTP(tape{w, d}, r)
	switch refused := d.status >= http.StatusBadRequest && d.status != x.plannedStatus(); {
	case refused && to.strict():
		f.tally.count(groupChecked, "requests that a strict upstream refused, to be sent again")
	case refused:
		f.tally.violate("upstream refused a forwarded request", x.id, "%d: %s", d.status, d.written)
	}
}

// reply answers as was planned for the exchange.
func (f *front) reply(r *fakeupstream.Request) fakeupstream.Answer {
	if x := f.exchange(r.Header.Get(exchangeHeader)); x != nil {
		a := x.answer
		a.Sealed = func(message json.RawMessage) { x.sealed.Store(&message) }
		return a
	}
	return fakeupstream.Answer{Content: "Too late."}
}

// serveSummariser judges a call of a summariser and has it answered.
func (f *front) serveSummariser(w http.ResponseWriter, r *http.Request, body []byte) {
	f.judgeSummariser(body, r.Header)
	d := &delivery{}
	f.fakes[upstream{}].ServeHTTP(tape{w, d}, r)
	if d.status == http.StatusBadRequest {
		f.tally.violate("upstream refused a summariser's request", "summariser", "%s", d.written)
	}
}

// summarise answers a summariser's call, rightly or not.
func (f *front) summarise(r *fakeupstream.Request) fakeupstream.Answer {
	answer := fakeupstream.Extract(r)
	f.mu.Lock()
	faulty := f.chance.Float64() < f.weather.summariser()
	all := summariserFaults(answer, r.Text())
	kind := all[f.chance.IntN(len(all))]
	f.mu.Unlock()
	if !faulty {
		f.tally.count(groupSummariser, "none")
		return answer
	}
	f.tally.count(groupSummariser, kind.name)
	return kind.answer
}
