package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Bounds of the queue of lines to be written.
const (
	maxQueuedLines = 8192
	maxQueuedBytes = 8 << 20
)

// Log is a logger that never blocks its callers. A goroutine writes the lines, so that an unread pipe blocks only
// the log. Lines that do not fit the queue are lost and counted.
type Log struct {
	*zap.Logger
	out   io.Writer
	lines chan []byte
	done  chan struct{}

	mu     sync.Mutex
	bytes  int             // queued
	lost   int             // lines that onLost has not been called for
	onLost func(lines int) // may be nil
	closed bool
}

// NewLogger returns a logger of a level that writes to out until it is closed. core makes the core of the logger, which writes to the given
// writer.
func NewLogger(level string, out io.Writer, core func(io.Writer, zapcore.LevelEnabler) zapcore.Core) (*Log, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	l := newLog(out)
	l.Logger = zap.New(core(l, parsed))
	return l, nil
}

// JSON returns the core of a logger that writes JSON.
func JSON(out io.Writer, level zapcore.LevelEnabler) zapcore.Core {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	return zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.AddSync(out), level)
}

func newLog(out io.Writer) *Log {
	l := &Log{out: out, lines: make(chan []byte, maxQueuedLines), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			_, _ = l.out.Write(line) // there is nowhere else to report an error
			l.mu.Lock()
			l.bytes -= len(line)
			l.mu.Unlock()
		}
	}()
	return l
}

// Write queues a line. It never blocks and never fails.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.bytes+len(line) <= maxQueuedBytes {
		select {
		case l.lines <- bytes.Clone(line):
			l.bytes += len(line)
			return len(line), nil
		default:
		}
	}
	l.lost++
	l.reportLost()
	return len(line), nil
}

// Sync does nothing, because lines are written without buffering.
func (l *Log) Sync() error { return nil }

// OnLost sets a function that is called when lines are lost. It is called at once for lines lost earlier. It must not block.
func (l *Log) OnLost(fn func(lines int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onLost = fn
	l.reportLost()
}

func (l *Log) reportLost() {
	if l.onLost != nil && l.lost > 0 {
		l.onLost(l.lost)
		l.lost = 0
	}
}

// Close writes the queued lines. It gives up when ctx ends. Lines logged later are lost.
func (l *Log) Close(ctx context.Context) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.lines)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
	}
}
