package app

import (
	"context"
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// Log is a logger that never blocks: lines that are not written in time are lost, and counted.
type Log struct {
	*zap.Logger
	writer *logWriter
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
	w := newLogWriter(out)
	return &Log{Logger: zap.New(zapcore.NewCore(encoder, w, level)), writer: w}, nil
}

// Close writes what is left until ctx ends. What is logged later is lost.
func (l *Log) Close(ctx context.Context) { l.writer.close(ctx) }

// Lost tells of lines that were lost, those before included. It is called where a line is lost, and must not wait.
func (l *Log) Lost(tell func(lines int)) { l.writer.tellLost(tell) }
