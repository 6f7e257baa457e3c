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
	body     Body
	arrivals int
	bytes    int // that arrived
	err      error
	done     chan struct{} // closed when the first arrival has been compared
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
func (x *expectations) add(e *expectation) uint64 {
	e.done = make(chan struct{})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next++
	x.all[x.next] = e
	return x.next
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
		return nil // take tells
	}
	return e
}

// came compares what came first with what was expected.
func (x *expectations) came(e *expectation, got []byte) {
	err := e.compare(got)
	x.mu.Lock()
	defer x.mu.Unlock()
	e.bytes, e.err = len(got), err
	close(e.done)
}

// await waits until a request has arrived and takes it.
func (x *expectations) await(id uint64) (int, error) {
	x.mu.Lock()
	e := x.all[id]
	x.mu.Unlock()
	if e != nil {
		select {
		case <-e.done:
		case <-time.After(x.wait):
		}
	}
	return x.take(id)
}

// take gives up an expectation and tells how many bytes arrived, or what was wrong.
func (x *expectations) take(id uint64) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.all[id]
	delete(x.all, id)
	switch {
	case e == nil:
		return 0, fmt.Errorf("request %d was not expected", id)
	case e.arrivals == 0:
		return 0, fmt.Errorf("request %d never arrived upstream: %w", id, errLost)
	case e.arrivals > 1:
		return 0, fmt.Errorf("request %d arrived upstream %d times", id, e.arrivals)
	case e.err != nil:
		return 0, fmt.Errorf("request %d: %w", id, e.err)
	}
	return e.bytes, nil
}

// check is an error if anything arrived unexpectedly.
func (x *expectations) check() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Join(x.errs...)
}

var (
	errLost    = errors.New("lost")
	errAltered = errors.New("altered on its way")
)

func (e *expectation) compare(got []byte) error {
	if len(got) != e.body.Len() {
		return fmt.Errorf("%w: %d bytes arrived, not %d", errAltered, len(got), e.body.Len())
	}
	at := 0
	for _, part := range e.body {
		if !bytes.Equal(got[at:at+len(part)], part) {
			return fmt.Errorf("%w: as long, but not the same", errAltered)
		}
		at += len(part)
	}
	return nil
}
