package process

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// Entry is what is read of one line of the log.
type Entry struct{ Msg, Listen, Admin string }

// Output takes what a process writes, and lets others wait for a line of its log. It is safe for concurrent use.
type Output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	rest    []byte // of a line that is not whole yet
	entries []Entry
	changed chan struct{} // closed and replaced at each new entry
}

// NewOutput gives an empty one.
func NewOutput() *Output { return &Output{changed: make(chan struct{})} }

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

// Find gives the first entry with that message, or what to wait for.
func (o *Output) Find(message string) (Entry, bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.entries {
		if e.Msg == message {
			return e, true, nil
		}
	}
	return Entry{}, false, o.changed
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Defect gives the first word in the output that only a defect of the program writes, empty if there is none.
func (o *Output) Defect() string {
	text := o.String()
	for _, word := range [...]string{`"msg":"panic"`, "panic: ", "fatal error: ", "DATA RACE"} {
		if strings.Contains(text, word) {
			return word
		}
	}
	return ""
}
