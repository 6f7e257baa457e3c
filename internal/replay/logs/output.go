package logs

import (
	"encoding/json"
	"fmt"
	"hash/maphash"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// output takes the runs of a file.
type output struct {
	name     string
	take     func(replay.Run) error
	answers  map[uint64]bool // of all files
	runs     int
	broken   int  // lines that could not be read
	repeated bool // the file repeats what an earlier one had
}

// seed is the same for all readers: answers are compared within a process only.
var seed = maphash.MakeSeed()

// history is a history as it is read: messages, and which of them are answers.
type history struct {
	protocol replay.Protocol
	label    string // of a sub-agent; empty: the main line
	system   json.RawMessage
	tools    json.RawMessage

	messages []json.RawMessage
	answers  []answer
	begin    int // answers among the messages before this one belong to an earlier run
}

// answer is an answer in a history.
type answer struct {
	at int    // place among the messages
	id string // empty: unknown
	replay.Recorded
}

// emit hands over a history as a run. Answers that an earlier run had do not count again.
func (o *output) emit(h *history) error {
	run := replay.Run{
		Name: o.name, Protocol: h.protocol, System: h.system, Tools: h.tools, Messages: h.messages,
		Begin: h.begin, Recorded: map[int]replay.Recorded{},
	}
	fresh, count := false, 0
	var said maphash.Hash
	said.SetSeed(seed)
	hashed := 0
	for _, a := range h.answers {
		for ; hashed <= a.at; hashed++ {
			_, _ = said.Write(h.messages[hashed]) // never fails
		}
		run.Recorded[a.at] = a.Recorded
		if a.at == 0 || a.at < h.begin {
			continue
		}
		known := a.id != "" && o.known(said.Sum64())
		if known && !fresh {
			run.Begin = a.at + 1
			o.repeated = true
			continue
		}
		fresh = true
		count++
	}
	if count == 0 {
		return nil
	}
	if o.runs++; o.runs > 1 {
		run.Name = fmt.Sprintf("%s#%d", run.Name, o.runs)
	}
	if h.label != "" {
		run.Name += " (" + h.label + ")"
	}
	return o.take(run)
}

// known reports whether an answer was handed over before, and remembers it. An answer is known by all messages up to it: servers repeat ids.
func (o *output) known(answer uint64) bool {
	known := o.answers[answer]
	o.answers[answer] = true
	return known
}
