package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// What waits to be written at most: lines, and their bytes.
const (
	waitingLines = 8192
	waitingBytes = 8 << 20
)

// Log is a logger that never blocks: it hands lines to a writer from a goroutine of its own, so that a pipe that is not read holds up the
// log and nothing else. Lines that are not written in time are lost, and counted.
type Log struct {
	*zap.Logger
	out   io.Writer
	lines chan []byte
	done  chan struct{}

	mu     sync.Mutex
	bytes  int // waiting
	lost   int // lines, and not told of
	tell   func(lines int)
	closed bool
}

// NewLogger makes the logger that a configuration asks for. It writes to out until it is closed.
func NewLogger(cfg config.Log, out io.Writer) (*Log, error) {
	level, err := zapcore.ParseLevel(cfg.Level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if cfg.Format == "console" {
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	l := newLog(out)
	l.Logger = zap.New(zapcore.NewCore(encoder, l, level))
	return l, nil
}

func newLog(out io.Writer) *Log {
	l := &Log{out: out, lines: make(chan []byte, waitingLines), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			_, _ = l.out.Write(line) // there is no other place to report it
			l.mu.Lock()
			l.bytes -= len(line)
			l.mu.Unlock()
		}
	}()
	return l
}

// Write takes a line. It never waits and never fails.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.bytes+len(line) <= waitingBytes {
		select {
		case l.lines <- bytes.Clone(line):
			l.bytes += len(line)
			return len(line), nil
		default:
		}
	}
	l.lost++
	l.tellNow()
	return len(line), nil
}

// Sync does nothing: what is written goes out as soon as it is taken.
func (l *Log) Sync() error { return nil }

// Lost tells of lines that were lost, those before included. It is called where a line is lost, and must not wait.
func (l *Log) Lost(tell func(lines int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell = tell
	l.tellNow()
}

func (l *Log) tellNow() {
	if l.tell != nil && l.lost > 0 {
		l.tell(l.lost)
		l.lost = 0
	}
}

// Close writes what is left until ctx ends. What is logged later is lost.
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
