package bench

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// expectation is what must arrive upstream of one request, once.
type expectation struct {
	body     []byte
	arrivals int
	err      error
	done     chan struct{} // closed when the first arrival has been compared
	// Where the answer waits for the client to leave: when the request arrived, and when the client was seen to leave.
	reached, left chan time.Time
}

// expectations are what is to arrive, by id. It may be used concurrently.
type expectations struct {
	mu   sync.Mutex
	next uint64
	all  map[uint64]*expectation
	errs []error       // unexpected arrivals
	wait time.Duration // for what was answered to have arrived and been compared
}

func newExpectations() *expectations {
	return &expectations{all: map[uint64]*expectation{}, wait: arrival}
}

// uncompared is the id of requests that are meant to be changed on their way.
const uncompared = math.MaxUint64

// arrival is how long the mock may take to have compared what it answered already.
const arrival = 10 * time.Second

// add expects a request, and gives it its id.
func (x *expectations) add(body []byte) (uint64, *expectation) {
	e := &expectation{body: body, done: make(chan struct{}), reached: make(chan time.Time, 1), left: make(chan time.Time, 1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next++
	x.all[x.next] = e
	return x.next, e
}

// arrived counts an arrival, before it is answered: who has the answer knows of it. It gives what is to be compared with
// it, nil if that is nothing.
func (x *expectations) arrived(id uint64) *expectation {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.all[id]
	if id == uncompared {
		return nil
	}
	if e == nil {
		x.errs = append(x.errs, fmt.Errorf("request %d arrived upstream, and was not expected", id))
		return nil
	}
	if e.arrivals++; e.arrivals > 1 {
		return nil // await tells
	}
	return e
}

// came compares what came first with what was expected.
func (x *expectations) came(e *expectation, got []byte) {
	if len(got) != len(e.body) {
		e.err = fmt.Errorf("altered on its way: %d bytes arrived, not %d", len(got), len(e.body))
	} else if !bytes.Equal(got, e.body) {
		e.err = errors.New("altered on its way: as long, but not the same")
	}
	close(e.done)
}

// await waits until a request has arrived, gives up its expectation, and tells what was wrong.
func (x *expectations) await(id uint64) error {
	x.mu.Lock()
	e := x.all[id]
	x.mu.Unlock()
	if e == nil {
		return fmt.Errorf("request %d was not expected", id)
	}
	compared := true
	select {
	case <-e.done:
	case <-time.After(x.wait):
		compared = false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.all, id)
	switch {
	case !compared:
		return fmt.Errorf("request %d never arrived upstream: it was lost", id)
	case e.arrivals > 1:
		return fmt.Errorf("request %d arrived upstream %d times", id, e.arrivals)
	case e.err != nil:
		return fmt.Errorf("request %d: %w", id, e.err)
	}
	return nil
}

// check is an error if anything arrived unexpectedly.
func (x *expectations) check() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Join(x.errs...)
}
