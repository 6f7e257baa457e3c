package proxy

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// linesASecond is how many lines of plain requests are written in one second at most.
const linesASecond = 200

// lines writes one line for each request into the log, when it is over. Lines of requests that went wrong, or that were
// condensed, are always written; of the others, and of those that belong to no tenant, only so many a second. How many were
// left out is told later. A nil lines writes nothing.
type lines struct {
	log     *zap.Logger
	metrics *Metrics
	fields  sync.Pool // of *[]zap.Field
	second  atomic.Int64
	written atomic.Int64 // in that second
	left    atomic.Int64 // out, and not told of yet
}

func newLines(log *zap.Logger, metrics *Metrics) *lines {
	return &lines{log: log, metrics: metrics, fields: sync.Pool{New: func() any {
		f := make([]zap.Field, 0, 32)
		return &f
	}}}
}

// write writes a request's line.
func (l *lines) write(o *observation, took time.Duration) {
	if l == nil {
		return
	}
	now := o.server.o.Now().Unix()
	if l.second.Swap(now) != now {
		l.written.Store(0)
		l.tell()
	}
	if o.plain() && l.written.Add(1) > linesASecond {
		l.left.Add(1)
		l.metrics.process.lines.WithLabelValues("sampled").Inc()
		return
	}
	entry := l.log.Check(zap.InfoLevel, "request")
	if entry == nil {
		return
	}
	fields, _ := l.fields.Get().(*[]zap.Field)
	*fields = o.fields((*fields)[:0], took)
	entry.Write(*fields...)
	clear(*fields)
	l.fields.Put(fields)
}

// tell says how many lines were left out.
func (l *lines) tell() {
	if n := l.left.Swap(0); n > 0 {
		l.log.Warn("lines of plain requests were left out", zap.Int64("lines", n))
	}
}

func (l *lines) close() {
	if l != nil {
		l.tell()
	}
}

// plain reports whether nothing of note happened to a request.
func (o *observation) plain() bool {
	return o.code == "" && (o.turn == nil || len(o.turn.Condensed()) == 0) || o.meters.tenant == ""
}

// outcome is how a request ended, in a word.
func (o *observation) outcome() string {
	switch {
	case o.code == "":
		return "ok"
	case o.code == codeClientGone, o.code == codeBroken:
		return o.code
	case o.code == codeUpstream4xx, o.code == codeUpstream5xx:
		return "upstream_error"
	case o.status >= 500:
		return "failed"
	}
	return "refused"
}

// fields are what a line says. Nothing in it is from a client, but counts.
func (o *observation) fields(f []zap.Field, took time.Duration) []zap.Field {
	f = append(f,
		zap.String("tenant", o.meters.tenant), zap.String("dialect", o.name.dialect), zap.String("model", o.name.model),
		zap.Int("status", o.status), zap.String("outcome", o.outcome()), zap.Float64("ms", milliseconds(took)),
	)
	if o.code != "" {
		f = append(f, zap.String("code", o.code))
	}
	if !o.sent.IsZero() {
		f = append(f, zap.Float64("overhead_ms", milliseconds(o.overhead)))
	}
	if !o.first.IsZero() {
		f = append(f, zap.Float64("first_byte_ms", milliseconds(o.first.Sub(o.sent))))
	}
	if id := o.spans.id(); id != "" {
		f = append(f, zap.String("trace_id", id))
	}
	if o.turn != nil {
		f = o.turnFields(f)
	}
	if u := o.usage; u != nil {
		f = append(f, zap.Int("prompt_tokens", u.Input), zap.Int("cached_tokens", u.Cached), zap.Int("completion_tokens", u.Output))
	}
	return f
}

func (o *observation) turnFields(f []zap.Field) []zap.Field {
	place, before, made := o.turn.Place(), o.turn.Before(), o.turn.Condensed()
	f = append(f,
		zap.String("session", string(place.Thread.Session)), zap.String("thread", string(place.Thread.ID)),
		zap.String("source", string(place.Source)),
		zap.Int("events", before.Events), zap.Int("tokens", before.Tokens),
		zap.Int("events_forwarded", o.after.Events), zap.Int("tokens_forwarded", o.after.Tokens),
	)
	if len(made) > 0 {
		reasons := make([]string, len(made))
		for i, c := range made {
			reasons[i] = string(c.Reason)
		}
		f = append(f, zap.Strings("condensed", reasons), zap.Float64("condense_ms", milliseconds(o.condensing)))
	}
	if due := o.request.due; due != "" {
		f = append(f, zap.String("due", string(due)))
	}
	return f
}

// milliseconds are rounded to microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
