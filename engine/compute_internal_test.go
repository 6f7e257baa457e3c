package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// TestComputeIsBounded: condensations use at most half of the processors at a time, and one that waits gives up with its context.
func TestComputeIsBounded(t *testing.T) {
	f := newFlights()
	places := max(runtime.GOMAXPROCS(0)/2, 1)
	begun, end := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	for range places {
		running.Go(func() {
			if err := f.compute(t.Context(), func() { begun <- struct{}{}; <-end }); err != nil {
				t.Error(err)
			}
		})
	}
	for range places {
		<-begun
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.compute(ctx, func() { t.Error("one too many") }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
	running.Wait()
	func() { // a panic releases its place
		defer func() { _ = recover() }()
		_ = f.compute(t.Context(), func() { panic("no") })
	}()
	for range places + 1 {
		if err := f.compute(t.Context(), func() {}); err != nil {
			t.Error(err)
		}
	}
}
