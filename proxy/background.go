package proxy

import "sync"

// background is the work that goes on next to requests and is waited for at the end.
type background struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// run starts fn in a goroutine of its own, or reports that it is too late.
func (b *background) run(fn func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.work.Go(fn)
	return true
}

// close takes no more work, and returns a channel that is closed when all there is has been done.
func (b *background) close() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.work.Wait()
	}()
	return done
}
