package process

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// Entry has the fields of a log line that others wait for.
type Entry struct{ Msg, Listen, Admin string }

// Output collects the output of a process and its log entries. It is safe for concurrent use.
type Output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	rest    []byte // start of an unfinished line
	entries []Entry
	changed chan struct{} // closed and replaced at each new entry
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	o.rest = append(o.rest, p...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		o.rest = rest
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Msg != "" {
			o.entries = append(o.entries, e)
			close(o.changed)
			o.changed = make(chan struct{})
		}
	}
}

// find returns the first entry with that message, or else a channel that is closed at the next entry.
func (o *Output) find(message string) (Entry, bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.entries {
		if e.Msg == message {
			return e, true, nil
		}
	}
	return Entry{}, false, o.changed
}

// String returns everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Defect returns a word in the output that only a bug in the program can cause, or "".
func (o *Output) Defect() string {
	text := o.String()
	for _, word := range [...]string{`"msg":"panic"`, "panic: ", "fatal error: ", "DATA RACE"} {
		if strings.Contains(text, word) {
			return word
		}
	}
	return ""
}
