package messages

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// CanHideTools reports whether the client sends tools and leaves the choice to the model, and upstream does not store the history. A stored
// history would contain calls that the client does not know.
func (d *Dialect) CanHideTools(r *dialect.Request) bool {
	return !r.Stores && assemble.AcceptsTools(r.Outside(), r.DefinesTools)
}

// FilterAnswers returns a filter that removes calls of hidden tools from answers.
func (d *Dialect) FilterAnswers(streamed bool, hidden func(tool string) bool) dialect.AnswerFilter {
	return assemble.NewFilter(streamed, &filter{State: assemble.State{Hidden: hidden, Numbers: map[int]int{}}})
}

// filter implements assemble.Reader. The parts in its State are blocks.
type filter struct {
	assemble.State
	stop string // stop_reason of this answer

	block  assemble.Piece // being assembled; nil between blocks
	input  []byte         // of the block, if it is a call
	grown  int            // bytes of both
	hidden bool           // the block is a call of a hidden tool
}

// Held returns about how many bytes of the answers are kept.
func (f *filter) Held() int { return f.State.Held() + f.grown }

// Forget drops the answers and keeps no more of them.
func (f *filter) Forget() {
	f.State.Forget()
	f.dropBlock()
}

func (f *filter) dropBlock() { f.block, f.input, f.grown = nil, nil, 0 }

// Next starts another answer.
func (f *filter) Next() {
	f.NextAnswer()
	f.stop = ""
	f.dropBlock()
}

// count counts a block that is a call.
func (f *filter) count(block rawjson.Value) {
	switch {
	case f.isHidden(block):
		f.Concealed++
	case split.Member(block, "type").Is("tool_use"):
		f.Own++
	}
}

// addBlock adds a complete block to Parts.
func (f *filter) addBlock(raw []byte) {
	block := rawjson.ValueOf(raw)
	part := assemble.Part{Raw: raw}
	if f.isHidden(block) {
		o := split.Read(block, blockKeys)
		call := callOf(&o)
		if len(call.Arguments) > dialect.MaxArguments {
			call.Arguments = strings.Clone(call.Arguments[:dialect.MaxArguments+1])
			part.Raw = bytes.Clone(split.WithMember(part.Raw, "input", []byte("{}"))) // its buffer is as large as the block was
		}
		part.Call = &call
	} else {
		part.Shown = part.Raw
	}
	f.AddPart(part)
}

// isHidden reports whether a block is a call of a hidden tool.
func (f *filter) isHidden(block rawjson.Value) bool {
	return split.Member(block, "type").Is("tool_use") && f.Hidden(split.Member(block, "name").Text())
}

// Said returns what the model said in this answer, with the message as it is sent back to upstream.
func (f *filter) Said() dialect.Said {
	said, blocks := f.Summary(f.complete())
	said.Message = assistantMessage(blocks)
	return said
}

// complete reports whether the answer was not cut off.
func (f *filter) complete() bool {
	return f.stop == "tool_use" || f.stop == "end_turn" || f.stop == "stop_sequence" || f.stop == "" && f.Framed
}

func assistantMessage(blocks [][]byte) []byte {
	if len(blocks) == 0 {
		return nil
	}
	return slices.Concat([]byte(`{"role":"assistant","content":`), split.List(blocks), []byte{'}'})
}

// Echo returns the message as the client received it.
func (f *filter) Echo() []byte { return assistantMessage(f.Shown()) }

// stopReason returns the stop_reason for the client, encoded. It does not claim a call if the client received none.
func (f *filter) stopReason() []byte {
	stop := f.stop
	if stop == "tool_use" && f.OnlyHidden(true) {
		stop = "end_turn"
	}
	return rawjson.AppendQuote(nil, stop)
}

// Whole reads an answer that is not streamed.
func (f *filter) Whole(body []byte) {
	answer := rawjson.ValueOf(body)
	for element := range rawjson.Elements(split.Member(answer, "content").Raw) {
		f.count(element)
		f.addBlock(bytes.Clone(element.Raw))
	}
	f.stop = split.Member(answer, "stop_reason").Text()
	f.SetUsage(split.Member(answer, "usage"))
}

// Rest returns an answer that is not streamed as the client receives it.
func (f *filter) Rest(body []byte) []byte {
	if !f.Differs() || f.stop == "" {
		return body
	}
	body = split.WithMember(body, "content", split.List(f.Shown()))
	body = split.WithMember(body, "stop_reason", f.stopReason())
	return split.WithMember(body, "usage", f.TotalUsage())
}

// Event reads an event of a stream.
func (f *filter) Event(data []byte) assemble.Output {
	event := rawjson.ValueOf(data)
	index := split.Integer(split.Member(event, "index"))
	switch split.Member(event, "type").Text() {
	case "message_start":
		f.SetUsage(split.Member(event, "message", "usage"))
		if f.Answers > 0 {
			return assemble.Output{}
		}
	case "content_block_start":
		block := split.Member(event, "content_block")
		f.count(block)
		f.beginBlock(block)
		if f.hidden {
			return assemble.Output{}
		}
		f.AssignNumber(index)
		data = f.Renumber(data, "index", index)
	case "content_block_delta":
		f.addDelta(split.Member(event, "delta"))
		data = f.Renumber(data, "index", index)
	case "content_block_stop":
		f.endBlock()
		data = f.Renumber(data, "index", index)
	case "message_delta":
		return f.end(event)
	}
	return assemble.Output{Text: data}
}

func (f *filter) beginBlock(block rawjson.Value) {
	f.dropBlock()
	f.hidden = f.isHidden(block)
	if f.decodes(block) {
		f.block = assemble.Decode(block.Raw)
		f.grown = assemble.Size(f.block)
	}
}

// decodes reports whether a value can be kept. If it is too large, nothing of the answer is.
func (f *filter) decodes(v rawjson.Value) bool {
	if !f.Forgot && !assemble.Decodes(v.Raw) {
		f.Forget()
	}
	return !f.Forgot
}

// addDelta adds a delta to the block being assembled.
func (f *filter) addDelta(delta rawjson.Value) {
	if f.block == nil || !f.decodes(delta) {
		return
	}
	if partial := split.Member(delta, "partial_json"); partial.Kind == rawjson.String {
		text := partial.Text()
		if room := dialect.MaxArguments + 1 - len(f.input); f.hidden && len(text) > room {
			text = text[:room]
		}
		f.input = append(f.input, text...)
		f.grown += len(text)
		return
	}
	piece := assemble.Decode(delta.Raw)
	if piece == nil {
		return
	}
	if citation := piece["citation"]; citation != nil {
		piece = assemble.Piece{"citations": []any{citation}}
	}
	delete(piece, "type")
	f.grown += assemble.Add(f.block, piece)
}

func (f *filter) endBlock() {
	if f.block == nil {
		return
	}
	raw := assemble.Encode(f.block)
	if f.hidden && len(f.input) > dialect.MaxArguments { // addBlock cuts it as it does any
		raw = split.WithMember(raw, "input", rawjson.AppendQuote(nil, string(f.input)))
	} else if len(f.input) > 0 && rawjson.Valid(f.input, 0) == nil {
		raw = split.WithMember(raw, "input", f.input)
	}
	f.dropBlock()
	f.addBlock(raw)
}

// end reads the event with the end of an answer, which is held back if the model called hidden tools only.
func (f *filter) end(event rawjson.Value) assemble.Output {
	data, delta := event.Raw, split.Member(event, "delta")
	f.stop = cmp.Or(split.Member(delta, "stop_reason").Text(), f.stop)
	if usage := split.Member(event, "usage").Raw; len(f.Usage)+len(usage) <= assemble.MaxUsage {
		for key, v := range rawjson.Members(usage) {
			f.Usage = split.WithMember(f.Usage, string(key.Raw), v.Raw)
		}
	}
	if len(f.Used) > 0 {
		data = split.WithMember(data, "usage", f.TotalUsage())
	}
	if !f.OnlyHidden(f.complete()) {
		return assemble.Output{Text: data}
	}
	return assemble.Output{End: split.WithMember(data, "delta", split.WithMember(delta.Raw, "stop_reason", f.stopReason()))}
}
