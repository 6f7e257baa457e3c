package observe

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxPlainPerSecond bounds the log lines for plain requests.
const maxPlainPerSecond = 200

// sample returns a logger that drops lines beyond the limit. dropped is called for each of them.
func sample(log *zap.Logger, dropped func()) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, maxPlainPerSecond, 0,
			zapcore.SamplerHook(func(_ zapcore.Entry, decision zapcore.SamplingDecision) {
				if decision&zapcore.LogDropped != 0 {
					dropped()
				}
			}))
	}))
}

// write logs a request, and its content if the record has it.
func (o Observer) write(r *proxy.Record) {
	if r.Content != nil {
		o.log.Info("content", contentFields(r)...)
	}
	log := o.log
	if isPlain(r) {
		log = o.sampled
	}
	if entry := log.Check(zap.InfoLevel, "request"); entry != nil {
		entry.Write(requestFields(r)...)
	}
}

// isPlain reports whether a request is one of many whose log lines are sampled: it has no tenant, or it did not fail, was not condensed, and
// did not have to be.
func isPlain(r *proxy.Record) bool {
	if r.Tenant == "" {
		return true
	}
	condensed := r.Turn != nil && len(r.Turn.Condensed) > 0
	return r.Code == "" && r.Condensed.Whole == "" && !condensed
}

// outcome summarises in a word how a request ended.
func outcome(r *proxy.Record) string {
	switch {
	case r.Code == "":
		return "ok"
	case r.Code == proxy.CodeClientGone, r.Code == proxy.CodeBroken, r.Code == proxy.CodeUnfinished:
		return r.Code
	case r.Code == proxy.CodeUpstream4xx, r.Code == proxy.CodeUpstream5xx:
		return "upstream_error"
	case r.Status >= 500:
		return "failed"
	}
	return "refused"
}

// requestFields returns the fields of a request's line. They contain nothing that a client sent except its request ID.
func requestFields(r *proxy.Record) []zap.Field {
	f := []zap.Field{
		zap.String("request_id", r.Asked.ID), zap.String("tenant", r.Tenant), zap.String("dialect", r.Dialect),
		zap.String("model", r.Model), zap.Int("status", r.Status), zap.String("outcome", outcome(r)),
		zap.Float64("ms", milliseconds(r.Times.Ended.Sub(r.Times.Begun))),
		nonEmpty("code", r.Code),
		nonEmpty("condense", r.Condensed.Did),
		when(r.Turn != nil || r.Condensed.Did != "", zap.Float64("condense_ms", milliseconds(r.Turn.Waited()))),
		nonEmpty("not_condensed", string(r.Condensed.Whole)),
		when(!r.Call.Sent.IsZero(), zap.Float64("overhead_ms", milliseconds(r.Times.Overhead))),
		when(!r.Call.First.IsZero(), zap.Float64("first_byte_ms", milliseconds(r.Call.First.Sub(r.Call.Sent)))),
		nonEmpty("trace_id", r.Asked.Trace),
	}
	if r.Turn != nil {
		f = append(f, turnFields(r.Turn)...)
	}
	if u := r.Call.Usage; u != nil {
		f = append(f, zap.Int("prompt_tokens", u.Input), zap.Int("cached_tokens", u.Cached), zap.Int("completion_tokens", u.Output))
	}
	return f
}

func turnFields(t *proxy.TurnRecord) []zap.Field {
	var reasons, asked []string
	for _, c := range t.Condensed {
		reasons = append(reasons, string(c.Reason))
		if c.Asked() != "" {
			asked = append(asked, string(c.Asked()))
		}
	}
	return []zap.Field{
		zap.String("session", string(t.Session)), zap.String("thread", string(t.Thread)), zap.String("source", string(t.Source)),
		zap.String("relation", string(t.Relation.Kind)),
		zap.Int("events", t.Before.Events), zap.Int("tokens", t.Before.Tokens),
		zap.Int("events_forwarded", t.After.Events), zap.Int("tokens_forwarded", t.After.Tokens),
		when(len(reasons) > 0, zap.Strings("condensed", reasons)),
		when(len(asked) > 0, zap.Strings("summary_asked", asked)),
		nonEmpty("parent", string(t.Relation.Parent)),
		when(t.Relation.Kind == session.RelationFork, zap.Int("fork_at", t.Relation.ForkAt)),
		nonEmpty("cause", string(t.Cause)),
		when(t.Relation.System, zap.Bool("system_changed", true)),
		nonEmpty("due", string(t.Due)),
		when(t.Supposed.Spared > 0, zap.Int("observed_saved_tokens", t.Supposed.Spared)),
	}
}

// when returns the field if wanted is true, and a field that is not logged otherwise.
func when(wanted bool, field zap.Field) zap.Field {
	if !wanted {
		return zap.Skip()
	}
	return field
}

// nonEmpty returns a text field that is logged unless it is empty.
func nonEmpty(key, value string) zap.Field { return when(value != "", zap.String(key, value)) }

// milliseconds returns d in milliseconds, truncated to microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// maxContent bounds each logged part of a request's content, in bytes.
const maxContent = 16 << 10

// contentFields returns a request's content: what the client sent, what was forwarded if that differs, and the answer.
func contentFields(r *proxy.Record) []zap.Field {
	f := []zap.Field{
		zap.String("request_id", r.Asked.ID), zap.String("tenant", r.Tenant), zap.Int("status", r.Status),
		zap.ByteString("request", cutMiddle(r.Content.Request)), zap.ByteString("answer", cutMiddle(answerText(r.Content.Answer))),
		nonEmpty("trace_id", r.Asked.Trace),
	}
	if r.Turn != nil {
		f = append(f, zap.String("session", string(r.Turn.Session)), zap.String("thread", string(r.Turn.Thread)))
	}
	if len(r.Content.Forwarded) > 0 {
		f = append(f, zap.ByteString("forwarded", cutMiddle(bytes.Join(r.Content.Forwarded, nil))))
	}
	return f
}

// answerText returns the text of an answer, followed by a line for each tool call.
func answerText(a dialect.Answer) []byte {
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

// cutMiddle shortens a text to maxContent bytes. It keeps more of the end, which has the latest message.
func cutMiddle(text []byte) []byte {
	if len(text) <= maxContent {
		return text
	}
	const mark = " [...] "
	head, tail := maxContent/4, maxContent*3/4-len(mark)
	return slices.Concat(text[:head], []byte(mark), text[len(text)-tail:])
}
