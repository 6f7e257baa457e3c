package proxy

import "sync"

// crew is the work that goes on beside requests, and that is waited for at the end. Its workers stay for the next piece of
// work, since a goroutine's stack costs more to grow than most of it to do. Make one with newCrew.
type crew struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // pieces under way
	next   chan func()
	idle   chan struct{} // a place per worker that may wait
}

// idleWorkers is how many workers wait for work at most.
const idleWorkers = 64

func newCrew() *crew {
	return &crew{next: make(chan func()), idle: make(chan struct{}, idleWorkers)}
}

// run starts fn beside its caller, or reports that it is too late.
func (c *crew) run(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Add(1)
	select {
	case c.next <- fn:
	default:
		go c.worker(fn)
	}
	return true
}

// worker does its work, and then what comes, unless enough others wait.
func (c *crew) worker(fn func()) {
	for {
		c.do(fn)
		select {
		case c.idle <- struct{}{}:
		default:
			return
		}
		var more bool
		fn, more = <-c.next
		<-c.idle
		if !more {
			return
		}
	}
}

func (c *crew) do(fn func()) {
	defer c.work.Done()
	fn()
}

// close takes no more work, and returns a channel that is closed when all there is has been done.
func (c *crew) close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.next)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.work.Wait()
	}()
	return done
}
