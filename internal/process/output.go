package e2e

import (
	"bytes"
	"encoding/json"
	"sync"
)

// entry is what a test reads of one line of the log.
type entry struct{ Msg, Listen, Admin string }

// output takes what a process writes, and lets tests wait for a line of its log.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	rest    []byte // of a line that is not whole yet
	entries []entry
	changed chan struct{} // closed and replaced at each new entry
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
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
		var e entry
		if json.Unmarshal(line, &e) == nil && e.Msg != "" {
			o.entries = append(o.entries, e)
			close(o.changed)
			o.changed = make(chan struct{})
		}
	}
}

// find gives the first entry with that message, or what to wait for.
func (o *output) find(message string) (entry, bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.entries {
		if e.Msg == message {
			return e, true, nil
		}
	}
	return entry{}, false, o.changed
}

// String is all that was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
