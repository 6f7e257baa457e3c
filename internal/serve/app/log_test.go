package app

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// gate is a writer that blocks until it is opened.
type gate struct {
	open    chan struct{}
	waiting chan struct{} // receives a value for each write that has begun
	mu      sync.Mutex
	bytes.Buffer
}

func newGate() *gate { return &gate{open: make(chan struct{}), waiting: make(chan struct{}, 1<<16)} }

func (g *gate) Write(p []byte) (int, error) {
	g.waiting <- struct{}{}
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Buffer.Write(p)
}

func (g *gate) lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Split(strings.TrimSuffix(g.String(), "\n"), "\n")
}

// TestStuckLog writes more lines than fit the queue. No write blocks, and each line is either written eventually or counted as lost.
func TestStuckLog(t *testing.T) {
	g := newGate()
	w := newLog(g)
	write := func(i int) { _, _ = fmt.Fprintf(w, "line %d\n", i) }
	write(0)
	<-g.waiting // the writer is stuck with the first line
	const more = 100
	for i := range maxQueuedLines + more {
		write(i + 1)
	}
	var lost atomic.Int64
	w.OnLost(func(n int) { lost.Add(int64(n)) })
	if lost.Load() != more {
		t.Errorf("%d lines are lost, want %d", lost.Load(), more)
	}
	write(-1)
	if lost.Load() != more+1 {
		t.Errorf("%d lines are lost, want %d", lost.Load(), more+1)
	}
	close(g.open)
	w.Close(t.Context())
	got := g.lines()
	if len(got) != maxQueuedLines+1 {
		t.Fatalf("%d lines", len(got))
	}
	for i, line := range got {
		if line != fmt.Sprintf("line %d", i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	write(1)
	if lost.Load() != more+2 {
		t.Error("a line after the end is not counted")
	}
}

// TestLongLines checks that the queue is bounded in bytes as well.
func TestLongLines(t *testing.T) {
	g := newGate()
	w := newLog(g)
	_, _ = w.Write([]byte("first\n"))
	<-g.waiting
	line := []byte(strings.Repeat("a", 1<<20) + "\n")
	for range maxQueuedBytes>>20 + 5 {
		_, _ = w.Write(line)
	}
	var lost int
	w.OnLost(func(n int) { lost += n })
	if lost != 6 { // with their newlines, eight lines exceed the bound
		t.Errorf("%d lost", lost)
	}
	close(g.open)
	w.Close(t.Context())
	if n := len(g.lines()); n != 1+maxQueuedBytes>>20-1 {
		t.Errorf("%d lines", n)
	}
}

// TestCloseGivesUp checks that Close returns although the lines are never written.
func TestCloseGivesUp(t *testing.T) {
	g := newGate()
	defer close(g.open)
	w := newLog(g)
	_, _ = w.Write([]byte("line\n"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Close(ctx)
	w.Close(ctx)
}
