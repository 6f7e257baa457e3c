package app

import (
	"bytes"
	"context"
	"io"
	"sync"

	"go.uber.org/zap/zapcore"
)

// What waits to be written at most: lines, and their bytes.
const (
	waitingLines = 8192
	waitingBytes = 8 << 20
)

// logWriter hands lines to a writer from a goroutine of its own, so that a pipe that is not read holds up the log and
// nothing else. It may be used concurrently.
type logWriter struct {
	out   io.Writer
	lines chan []byte
	done  chan struct{}

	mu     sync.Mutex
	bytes  int // waiting
	lost   int // lines, and not told of
	tell   func(lines int)
	closed bool
}

var _ zapcore.WriteSyncer = (*logWriter)(nil)

func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: out, lines: make(chan []byte, waitingLines), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for line := range w.lines {
			w.write(line)
		}
	}()
	return w
}

// Write takes a line. It never waits and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed && w.bytes+len(line) <= waitingBytes {
		select {
		case w.lines <- bytes.Clone(line):
			w.bytes += len(line)
			return len(line), nil
		default:
		}
	}
	w.lost++
	w.tellNow()
	return len(line), nil
}

// Sync does nothing: what is written goes out as soon as it is taken.
func (w *logWriter) Sync() error { return nil }

func (w *logWriter) tellLost(tell func(lines int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell = tell
	w.tellNow()
}

func (w *logWriter) tellNow() {
	if w.tell != nil && w.lost > 0 {
		w.tell(w.lost)
		w.lost = 0
	}
}

// together is how many bytes are written at once at most, but for a line that is longer.
const together = 64 << 10

// write writes a line, with those that wait behind it.
func (w *logWriter) write(line []byte) {
	batch := line
	for len(batch) < together && len(w.lines) > 0 { // no one else takes them
		batch = append(batch, <-w.lines...)
	}
	_, _ = w.out.Write(batch) // there is no other place to report it
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= len(batch)
}

// close writes what is left until ctx ends.
func (w *logWriter) close(ctx context.Context) {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
	}
}
