package soak

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
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

	mu         sync.Mutex
	deliveries []*delivery
	sealed     json.RawMessage // the answer with its reasoning, as upstream last gave it; nil: it has none
}

// seal has the client hold the answer as upstream gives it.
func (x *exchange) seal(message json.RawMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sealed = message
}

// answeredWith is the message that the client holds once the exchange is over.
func (x *exchange) answeredWith(m message) json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sealed != nil {
		return x.sealed
	}
	return m.raw()
}

// span is the bytes from to to-1.
type span struct{ from, to int }

// delivery is an exchange's request as it reached upstream, and what upstream wrote.
type delivery struct {
	body    []byte
	arrived time.Time

	mu      sync.Mutex
	status  int
	header  http.Header
	written bytes.Buffer
	began   time.Time // when the header was written
	ended   time.Time
}

// answered is what a delivery came to, so far.
type answered struct {
	status       int
	header       http.Header
	written      []byte
	arrived      time.Time
	began, ended time.Time
}

func (d *delivery) answered() answered {
	d.mu.Lock()
	defer d.mu.Unlock()
	return answered{d.status, d.header, bytes.Clone(d.written.Bytes()), d.arrived, d.began, d.ended}
}

func (x *exchange) deliver(body []byte) *delivery {
	d := &delivery{body: body, arrived: time.Now()}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deliveries = append(x.deliveries, d)
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

// last is the newest delivery, nil if the request never reached upstream.
func (x *exchange) last() *delivery {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.deliveries) == 0 {
		return nil
	}
	return x.deliveries[len(x.deliveries)-1]
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
	t.d.written.Write(p) // before the client can have it
	t.d.mu.Unlock()
	return t.ResponseWriter.Write(p)
}

func (d *delivery) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = time.Now()
}

// desk is the exchanges under way, and those before them for what arrives late.
type desk struct {
	mu  sync.Mutex
	all map[string]*exchange
}

func newDesk() *desk { return &desk{all: map[string]*exchange{}} }

func (d *desk) put(x *exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[x.id] = x
}

func (d *desk) get(id string) *exchange {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[id]
}

func (d *desk) drop(ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		delete(d.all, id)
	}
}
