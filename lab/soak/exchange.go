package soak

import (
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// exchangeHeader carries an exchange's number through the proxy, as it carries every header that it does not know.
const exchangeHeader = "X-Soak-Exchange"

// exchange is one request of an agent, and what is planned for it and known of it.
type exchange struct {
	id     string
	family *family
	sent   []byte
	edited [][]byte // as line.edited
	inside span     // the messages in it, between the brackets
	fault  fault
	answer fakeupstream.Answer

	newest atomic.Pointer[delivery]        // nil: the request never reached upstream
	sealed atomic.Pointer[json.RawMessage] // the answer with its reasoning, as upstream last gave it; nil: it has none
}

// span is the bytes from to to-1.
type span struct{ from, to int }

// delivery is an exchange's request as it reached upstream, and what it came to, so far.
type delivery struct {
	body []byte
	mu   sync.Mutex
	answered
}

// answered is what upstream wrote.
type answered struct {
	status  int
	header  http.Header
	written []byte
	arrived time.Time
	began   time.Time // when the header was written
	ended   time.Time
}

// soFar is what has been written.
func (d *delivery) soFar() answered {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered
}

func (x *exchange) deliver(body []byte) *delivery {
	d := &delivery{body: body, answered: answered{arrived: time.Now()}}
	x.newest.Store(d)
	return d
}

// plannedStatus is the status with which upstream is to answer.
func (x *exchange) plannedStatus() int {
	switch {
	case x.answer.Error != nil:
		return x.answer.Error.Status
	case x.answer.Raw != nil:
		return x.answer.Raw.Status
	}
	return http.StatusOK
}

// tape notes what upstream writes.
type tape struct {
	http.ResponseWriter
	d *delivery
}

// Unwrap is for http.ResponseController.
func (t tape) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t tape) WriteHeader(status int) {
	t.d.mu.Lock()
	t.d.status, t.d.header, t.d.began = status, t.Header().Clone(), time.Now()
	t.d.mu.Unlock()
	t.ResponseWriter.WriteHeader(status)
}

func (t tape) Write(p []byte) (int, error) {
	t.d.mu.Lock()
	t.d.written = append(t.d.written, p...) // before the client can have it
	t.d.mu.Unlock()
	return t.ResponseWriter.Write(p)
}

func (d *delivery) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = time.Now()
}

// exchange gives an exchange by its id, nil if its client has gone on.
func (s *soak) exchange(id string) *exchange {
	x, _ := s.exchanges.Load(id)
	found, _ := x.(*exchange)
	return found
}
