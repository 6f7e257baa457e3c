package messages

import (
	"bytes"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Tee returns a reader for an answer. A stream ends with a message_stop or an error event.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	return split.NewTee(streamed, "", &answer{split.Collector{NoArguments: "{}"}, map[string]int{}})
}

// Opening reports whether an event only begins a message or a block that is still empty, or is a ping.
func (d *Dialect) Opening(event []byte) bool {
	return split.Opening(event, func(e rawjson.Value) bool {
		switch split.Member(e, "type").Text() {
		case "message_start", "ping":
			return true
		case "content_block_start":
			return split.Blank(split.Member(e, "content_block"), "type")
		}
		return false
	})
}

// answer implements split.AnswerReader.
type answer struct {
	split.Collector
	counts map[string]int // the highest of each counter of usage, by name
}

// Whole reads an answer that is not streamed.
func (a *answer) Whole(body rawjson.Value) {
	n := 0
	for block := range rawjson.Elements(split.Member(body, "content").Raw) {
		a.beginBlock(n, block)
		n++
	}
	a.Known.ID = split.Truncate(split.Member(body, "id").Text())
	a.SetFinish(split.Member(body, "stop_reason").Text())
	a.addUsage(split.Member(body, "usage"))
	if e := split.Member(body, "error"); e.Kind == rawjson.Object {
		a.Fail(split.Member(e, "type"))
	}
}

// Event reads an event of a stream.
func (a *answer) Event(event rawjson.Value) (ends bool) {
	index, delta := split.Integer(split.Member(event, "index")), split.Member(event, "delta")
	switch split.Member(event, "type").Text() {
	case "message_start":
		a.Known.ID = split.Truncate(split.Member(event, "message", "id").Text())
		a.addUsage(split.Member(event, "message", "usage"))
	case "content_block_start":
		a.beginBlock(index, split.Member(event, "content_block"))
	case "content_block_delta":
		a.AddCompaction(contentOf(delta))
		a.AddText(split.Member(delta, "text").Text())
		a.Known.Wrote += len(split.Member(delta, "thinking").Inner())
		for i := range a.Calls {
			if a.Calls[i].Index == index {
				a.AddArguments(&a.Calls[i], split.Member(delta, "partial_json").Text())
			}
		}
	case "message_delta":
		a.SetFinish(split.Member(delta, "stop_reason").Text())
		a.addUsage(split.Member(event, "usage"))
	case "error":
		a.Fail(split.Member(event, "error", "type"))
		return true
	case "message_stop":
		return true
	}
	return false
}

// beginBlock reads a block, or the start of one in a stream.
func (a *answer) beginBlock(index int, block rawjson.Value) {
	a.AddCompaction(contentOf(block))
	kind := split.Member(block, "type")
	switch {
	case kind.Is("text"):
		a.AddPart(split.Member(block, "text").Text())
	case kind.Is("tool_use"):
		input := string(split.Member(block, "input").Raw)
		if input == "{}" { // a stream sends the input in pieces after it
			input = ""
		}
		a.BeginCall(index, split.Member(block, "id").Text(), split.Member(block, "name").Text(), input)
	case bytes.HasSuffix(kind.Inner(), []byte("_tool_use")):
		a.Known.Ran = true
	}
}

// Answer returns what has been read so far. Said contains the text and the calls if upstream may store the answer.
func (a *answer) Answer() dialect.Answer {
	said := a.Collector.Answer()
	if u := said.Usage; u != nil && said.Finish == "" {
		u.Output = max(u.Output, said.Wrote/4) // a stream that was cut off has reported only the count at its start
	}
	if said.ID == "" || said.Lost {
		return said
	}
	var blocks [][]byte
	if said.Text != "" {
		blocks = append(blocks, append(rawjson.AppendQuote([]byte(`{"type":"text","text":`), said.Text), '}'))
	}
	for _, c := range said.Calls {
		if rawjson.Valid([]byte(c.Arguments), 0) != nil {
			return said
		}
		blocks = append(blocks, fmt.Appendf(nil, `{"type":"tool_use","id":%s,"name":%s,"input":%s}`,
			rawjson.AppendQuote(nil, c.ID), rawjson.AppendQuote(nil, c.Name), c.Arguments))
	}
	said.Said = assistantMessage(blocks)
	return said
}

// addUsage reads a usage report. A stream has one at the start and one at the end, which may contain only what has changed. input_tokens
// does not include tokens read from the cache or written to it. Tokens written are also reported by how long they stay.
func (a *answer) addUsage(report rawjson.Value) {
	if report.Kind != rawjson.Object {
		return
	}
	count := func(path ...string) int {
		key := path[len(path)-1]
		a.counts[key] = max(a.counts[key], split.Integer(split.Member(report, path...)))
		return a.counts[key]
	}
	read, hour := count("cache_read_input_tokens"), count("cache_creation", "ephemeral_1h_input_tokens")
	written := max(count("cache_creation_input_tokens"), count("cache_creation", "ephemeral_5m_input_tokens")+hour)
	a.SetUsage(session.Usage{
		Input: count("input_tokens") + read + written, Cached: read, Output: count("output_tokens"), Written: written, WrittenLong: hour,
	})
}
