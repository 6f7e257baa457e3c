package proxy

import (
	"bytes"
	"strings"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// contentBytes bounds each part of what is logged of a request's content.
const contentBytes = 16 << 10

// content writes what a request said, what was forwarded if that was not the same, and what it was answered: only for a
// tenant whose LogContent is set. The request's body must still be held.
func (l *lines) content(o *observation) {
	r := o.request
	if l == nil || r.asked.dialect == nil || !r.tenant.LogContent {
		return
	}
	fields := []zap.Field{
		zap.String("tenant", r.tenant.Name), zap.Int("status", o.status), zap.ByteString("request", middleCut(r.body.bytes)),
		zap.ByteString("answer", middleCut(spoken(o.answer))),
	}
	if id := o.spans.id(); id != "" {
		fields = append(fields, zap.String("trace_id", id))
	}
	if t := o.turn; t != nil {
		fields = append(fields, zap.String("session", string(t.Place().Thread.Session)), zap.String("thread", string(t.Place().Thread.ID)))
		if parts := t.Forwarded(); len(parts) > 1 {
			fields = append(fields, zap.ByteString("forwarded", middleCut(bytes.Join(parts, nil))))
		}
	}
	l.log.Info("content", fields...)
}

// spoken is an answer as it is logged: its text, and a line for each call.
func spoken(a dialect.Answer) []byte {
	var b strings.Builder
	b.WriteString(a.Text)
	for _, call := range a.Calls {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(call.Name + " " + call.Arguments)
	}
	return []byte(b.String())
}

// middleCut keeps the beginning and the end of a text, which has the newest message.
func middleCut(text []byte) []byte {
	if len(text) <= contentBytes {
		return text
	}
	const mark = " [...] "
	head, tail := contentBytes/4, contentBytes*3/4-len(mark)
	return append(append(bytes.Clone(text[:head]), mark...), text[len(text)-tail:]...)
}
