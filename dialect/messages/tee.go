package messages

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Tee begins to read an answer. Of a stream, Ended is true once message_stop or an error event has passed.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	return split.Tee(streamed, "", &answer{Gathered: split.Gathered{NoArguments: "{}"}})
}

// answer gathers what events, or a whole body, tell.
type answer struct {
	split.Gathered
	usage [len(tokens)]int
}

// Whole takes an answer that is not streamed.
func (a *answer) Whole(body rawjson.Value) {
	n := 0
	for block := range rawjson.Elements(split.Member(body, "content").Raw) {
		a.begin(n, block)
		n++
	}
	a.Stop(split.Member(body, "stop_reason").Text())
	a.meter(split.Member(body, "usage"))
}

// Event takes an event of a stream.
func (a *answer) Event(event rawjson.Value) (ends bool) {
	index, delta := split.Integer(split.Member(event, "index")), split.Member(event, "delta")
	switch split.Member(event, "type").Text() {
	case "message_start":
		a.meter(split.Member(event, "message", "usage"))
	case "content_block_start":
		a.begin(index, split.Member(event, "content_block"))
	case "content_block_delta":
		a.compact(delta)
		a.Say(split.Member(delta, "text").Text())
		for i := range a.Calls {
			if a.Calls[i].Index == index {
				a.Argue(&a.Calls[i], split.Member(delta, "partial_json").Text())
			}
		}
	case "message_delta":
		a.Stop(split.Member(delta, "stop_reason").Text())
		a.meter(split.Member(event, "usage"))
	case "message_stop", "error":
		return true
	}
	return false
}

// begin takes a block, or how one begins.
func (a *answer) begin(index int, block rawjson.Value) {
	a.compact(block)
	switch kind := split.Member(block, "type"); {
	case kind.Is("text"):
		a.Say(split.Member(block, "text").Text())
	case kind.Is("tool_use"):
		c := a.Call(index, split.Member(block, "id").Text(), split.Member(block, "name").Text())
		if input := string(split.Member(block, "input").Raw); c != nil && input != "{}" {
			a.Argue(c, input)
		}
	}
}

func (a *answer) compact(block rawjson.Value) {
	if mark := markOf(block); mark != "" {
		a.Learnt.Compactions = append(a.Learnt.Compactions, mark)
	}
}

// tokens are what a usage report counts. What is read from the cache or written to it is no part of the input there; what was written is
// told by how long it stays, too.
var tokens = [...][]string{
	input: {"input_tokens"}, read: {"cache_read_input_tokens"}, written: {"cache_creation_input_tokens"}, output: {"output_tokens"},
	minutes: {"cache_creation", "ephemeral_5m_input_tokens"}, hour: {"cache_creation", "ephemeral_1h_input_tokens"},
}

const (
	input = iota
	read
	written
	output
	minutes
	hour
)

// meter takes a report. A stream begins with one, and ends with one that may repeat only what has changed.
func (a *answer) meter(report rawjson.Value) {
	if report.Kind != rawjson.Object {
		return
	}
	u := &a.usage
	for i, path := range tokens {
		u[i] = max(u[i], split.Integer(split.Member(report, path...)))
	}
	stored := max(u[written], u[minutes]+u[hour])
	a.Learnt.Usage = &session.Usage{
		Input: u[input] + u[read] + stored, Cached: u[read], Output: u[output], Written: stored, WrittenLong: u[hour],
	}
}
