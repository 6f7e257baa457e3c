package proxy

import "sync"

// crew is the work that goes on beside requests, and that is waited for at the end. The zero value is ready.
type crew struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// run starts fn beside its caller, or reports that it is too late.
func (c *crew) run(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(fn)
	}
	return !c.closed
}

// close takes no more work, and returns a channel that is closed when all there is has been done.
func (c *crew) close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.work.Wait()
	}()
	return done
}
