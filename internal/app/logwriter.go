package app

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

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
	bytes atomic.Int64 // waiting
	stop  chan struct{}
	once  sync.Once
	done  chan struct{}

	mu     sync.Mutex
	lost   int // and not told of
	tell   func(lines int)
	closed atomic.Bool
}

var _ zapcore.WriteSyncer = (*logWriter)(nil)

func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: out, lines: make(chan []byte, waitingLines), stop: make(chan struct{}), done: make(chan struct{})}
	go w.work()
	return w
}

// Write takes a line. It never waits and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	size := int64(len(line))
	if w.closed.Load() || w.bytes.Add(size) > waitingBytes {
		w.bytes.Add(-size)
		w.lose()
		return len(line), nil
	}
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.bytes.Add(-size)
		w.lose()
	}
	return len(line), nil
}

// Sync does nothing: what is written goes out as soon as it is taken.
func (w *logWriter) Sync() error { return nil }

func (w *logWriter) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost++; w.tell != nil {
		w.tell(w.lost)
		w.lost = 0
	}
}

func (w *logWriter) tellLost(tell func(lines int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tell = tell; w.lost > 0 {
		tell(w.lost)
		w.lost = 0
	}
}

// work writes until it is told to stop, and then what is left.
func (w *logWriter) work() {
	defer close(w.done)
	for {
		select {
		case line := <-w.lines:
			w.write(line)
		case <-w.stop:
			for {
				select {
				case line := <-w.lines:
					w.write(line)
				default:
					return
				}
			}
		}
	}
}

// together is how many bytes are written at once at most, but for a line that is longer.
const together = 64 << 10

// write writes a line, with those that wait behind it.
func (w *logWriter) write(line []byte) {
	batch := line
	for len(batch) < together {
		select {
		case next := <-w.lines:
			batch = append(batch, next...)
			continue
		default:
		}
		break
	}
	_, _ = w.out.Write(batch) // there is no other place to report it
	w.bytes.Add(-int64(len(batch)))
}

// close writes what is left until ctx ends.
func (w *logWriter) close(ctx context.Context) {
	w.once.Do(func() {
		w.closed.Store(true)
		close(w.stop)
	})
	select {
	case <-w.done:
	case <-ctx.Done():
	}
}
