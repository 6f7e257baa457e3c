package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// core writes the entries of a logger to a console.
type core struct {
	zapcore.LevelEnabler
	console *Console
	with    []zapcore.Field
}

func (k core) With(fields []zapcore.Field) zapcore.Core {
	k.with = slices.Concat(k.with, fields)
	return k
}

func (k core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if k.Enabled(e.Level) && !(e.Level <= zapcore.InfoLevel && slices.Contains(silent, e.Message)) {
		return to.AddCore(e, k)
	}
	return to
}

// Write writes an entry. A warning is written once in repeatAfter.
func (k core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := words(e.Message, slices.Concat(k.with, fields))
	c := k.console
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Level != zapcore.WarnLevel || c.sayOnce(text) {
		c.write(entry(c.screen, e.Time.Local(), e.Level, text))
	}
	return nil
}

func (core) Sync() error { return nil }

// silent lists messages for information that people need not see: the banner, the lines of requests or the total say it.
var silent = []string{
	"request", "condensed", "condensed without a summary", "serving", "stopped", "memory is limited", "a context window was learnt from upstream",
}

// details lists fields that a person at a terminal does not need: who reads further takes the log in JSON.
var details = []string{
	"request_id", "trace_id", "session", "thread", "condenser", "reason", "outcome", "ms", "attempts", "prompt_tokens", "cached_tokens",
	"completion_tokens", "seq", "made", "asked", "events", "tokens", "events_after", "tokens_after", "cause", "op", "grounded", "usd",
}

// words returns what an entry says: its message, the error, and other fields in brackets.
func words(message string, fields []zapcore.Field) string {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	get := func(key string) string {
		v, ok := values.Fields[key]
		if !ok {
			return ""
		}
		delete(values.Fields, key)
		return fmt.Sprint(v)
	}
	switch message {
	case "configuration warning":
		key, says, origin := get("key"), get("warning"), get("origin")
		if origin != "" {
			origin = " (" + origin + ")"
		}
		return fmt.Sprintf("%s: %s%s", key, says, origin)
	case "stopping":
		return "stopping: requests in progress are waited for; press Ctrl-C again not to wait"
	}
	if failure := get("error"); failure != "" {
		message += ": " + failure
	}
	var rest []string
	for _, f := range fields { // in their order
		if v, ok := values.Fields[f.Key]; ok && !slices.Contains(details, f.Key) && !(f.Key == "tenant" && v == config.DefaultTenant) {
			rest = append(rest, fmt.Sprintf("%s %v", strings.ReplaceAll(f.Key, "_", " "), v))
		}
	}
	if len(rest) > 0 {
		message += " (" + strings.Join(rest, ", ") + ")"
	}
	return message
}

// entry lays an entry out for a screen.
func entry(s terminal.Screen, at time.Time, level zapcore.Level, text string) string {
	label, colour := "", terminal.Faint
	switch {
	case level >= zapcore.ErrorLevel:
		label, colour = "error: ", terminal.Red
	case level == zapcore.WarnLevel:
		label, colour = "warning: ", terminal.Yellow
	}
	columns := s.Columns()
	if columns == 0 {
		columns = boundary
	}
	out := s.Paint(terminal.Faint, at.Format(clock))
	gap := "  "
	for paragraph := range strings.SplitSeq(label+text, "\n") {
		for _, l := range terminal.Wrap(terminal.Clean(paragraph), max(columns-indent, 20)) {
			out += gap + s.Paint(colour, l)
			gap = "\n" + strings.Repeat(" ", indent)
		}
	}
	return out + "\n"
}
