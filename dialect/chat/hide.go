package chat

import (
	"bytes"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// CanHideTools reports whether the client sends tools, leaves the choice to the model, and asks for one choice.
func (d *Dialect) CanHideTools(r *dialect.Request) bool {
	outside := r.Outside()
	n := split.Member(rawjson.ValueOf(outside), "n")
	return (n.Kind != rawjson.Number || string(n.Raw) == "1") && assemble.AcceptsTools(outside, r.DefinesTools)
}

// FilterAnswers returns a filter that removes calls of hidden tools from answers.
func (d *Dialect) FilterAnswers(streamed bool, hidden func(tool string) bool) dialect.AnswerFilter {
	return assemble.NewFilter(streamed, &filter{State: assemble.State{Hidden: hidden}})
}

// filter implements assemble.Reader. The parts in its State are calls.
type filter struct {
	assemble.State
	text        string // of the earlier answers, which the client has received
	id, created []byte // of the first chunk
	current
}

// current is the state of one answer.
type current struct {
	message assemble.Piece
	finish  string
	ended   bool

	calls   []streamedCall
	visible int // number of calls that the client receives
}

// streamedCall is a call in a stream.
type streamedCall struct {
	id     string
	index  int // as upstream counts
	number int // as the client counts
	hidden bool
}

// Next starts another answer.
func (f *filter) Next() {
	text, _ := f.content()
	f.text += text
	f.current = current{}
	f.NextAnswer()
}

// content returns the text of the message, and whether its content is nothing but text.
func (f *filter) content() (text string, plain bool) {
	text, plain = assemble.Text(f.message["content"])
	return text, plain || f.message["content"] == nil
}

// complete reports whether the answer was not cut off, as far as is known.
func (f *filter) complete() bool { return f.finish != "length" && f.finish != "content_filter" }

// Said returns what the model said in this answer, with the message as it is sent back to upstream.
func (f *filter) Said() dialect.Said {
	f.Parts = nil
	for call := range rawjson.Elements(split.Member(rawjson.ValueOf(assemble.Encode(f.message)), "tool_calls").Raw) {
		f.addCall(call)
	}
	said, calls := f.Summary((f.ended || f.finish != "") && f.complete())
	text, plain := f.content()
	if f.message == nil || !plain {
		return said
	}
	m := assemble.Piece{"role": "assistant", "content": nil}
	for key, v := range f.message {
		switch {
		case v == nil, key == "annotations", key == "audio": // upstream does not accept these in the form it sends them
		case key == "content" && text == "":
		default:
			m[key] = v
		}
	}
	if len(calls) > 0 {
		m["tool_calls"] = assemble.Raw(split.List(calls))
	}
	said.Message = assemble.Encode(m)
	return said
}

// addCall adds a call of the message to Parts.
func (f *filter) addCall(call rawjson.Value) {
	part := assemble.Part{Raw: split.WithoutMember(call.Raw, "index")}
	name := split.Member(call, "function", "name").Text()
	if name != "" && f.Hidden(name) {
		arguments := split.Member(call, "function", "arguments").Text()
		part.Call = &session.Call{ID: split.Member(call, "id").Text(), Name: name, Arguments: arguments}
	} else {
		part.Shown, part.Own = part.Raw, true
	}
	f.Parts = append(f.Parts, part)
}

// Echo returns the message as the client received it.
func (f *filter) Echo() []byte {
	text, plain := f.content()
	if f.message == nil || !plain {
		return nil
	}
	m := assemble.Piece{"role": "assistant", "content": f.text + text}
	if calls := f.Shown(); len(calls) > 0 {
		m["tool_calls"] = assemble.Raw(split.List(calls))
	}
	return assemble.Encode(m)
}

// finishWithoutCalls returns the finish reason for a client that received no calls.
func finishWithoutCalls(reason string) string {
	if reason == "tool_calls" || reason == "function_call" {
		return "stop"
	}
	return reason
}

// Whole reads an answer that is not streamed.
func (f *filter) Whole(body []byte) {
	choice := firstChoice(body)
	f.message = assemble.Decode(split.Member(choice, "message").Raw)
	f.finish = split.Member(choice, "finish_reason").Text()
	f.ended = true
	f.SetUsage(split.Member(rawjson.ValueOf(body), "usage"))
}

func firstChoice(body []byte) rawjson.Value {
	for element := range rawjson.Elements(split.Member(rawjson.ValueOf(body), "choices").Raw) {
		return element
	}
	return rawjson.Value{}
}

// Rest returns an answer that is not streamed as the client receives it.
func (f *filter) Rest(body []byte) []byte {
	if f.message == nil || !f.Differs() {
		return body
	}
	choice := firstChoice(body)
	message, finish := split.Member(choice, "message").Raw, f.finish
	if shown := f.Shown(); len(shown) < len(f.Parts) {
		message = split.WithoutMember(message, "tool_calls")
		if len(shown) > 0 {
			message = split.WithMember(message, "tool_calls", split.List(shown))
		} else {
			finish = finishWithoutCalls(finish)
		}
	}
	if text, plain := f.content(); f.text != "" && plain {
		message = split.WithMember(message, "content", rawjson.AppendQuote(nil, f.text+text))
	}
	body = split.WithMember(body, "usage", f.TotalUsage())
	out := split.WithMember(choice.Raw, "message", message)
	out = split.WithMember(out, "finish_reason", rawjson.AppendQuote(nil, finish))
	return withChoice(body, out)
}

// hidesAll reports whether there are calls so far, none of which the client receives.
func (f *filter) hidesAll() bool { return f.visible == 0 && len(f.calls) > 0 }

// Event reads a chunk.
func (f *filter) Event(data []byte) assemble.Output {
	if string(data) == split.Done {
		f.ended = true
		if f.hidesAll() && f.complete() {
			return assemble.Output{End: data}
		}
		return assemble.Output{Text: data}
	}
	chunk, out := rawjson.ValueOf(data), data
	if f.Answers > 0 {
		for name, value := range map[string][]byte{"id": f.id, "created": f.created} {
			if split.Member(chunk, name).Kind != 0 {
				out = split.WithMember(out, name, value)
			}
		}
	} else if f.id == nil {
		f.id = bytes.Clone(split.Member(chunk, "id").Raw)
		f.created = bytes.Clone(split.Member(chunk, "created").Raw)
	}
	usage := split.Member(chunk, "usage")
	f.SetUsage(usage)
	if usage.Kind == rawjson.Object && len(f.Used) > 0 {
		out = split.WithMember(out, "usage", f.TotalUsage())
	}
	for choice := range rawjson.Elements(split.Member(chunk, "choices").Raw) {
		if split.Integer(split.Member(choice, "index")) != 0 {
			continue
		}
		now, end := f.filterChoice(choice)
		switch {
		case end != nil && now != nil:
			return assemble.Output{Text: withChoice(out, now), End: withChoice(out, end)}
		case end != nil:
			return assemble.Output{End: withChoice(out, end)}
		case now == nil && usage.Kind != rawjson.Object:
			return assemble.Output{}
		case !bytes.Equal(now, choice.Raw):
			out = withChoice(out, now)
		}
	}
	return assemble.Output{Text: out}
}

// withChoice replaces the choices of a chunk. A nil choice leaves an empty list.
func withChoice(chunk, choice []byte) []byte {
	return split.WithMember(chunk, "choices", split.List([][]byte{choice}))
}

// filterChoice returns what the client receives of a choice, or nil for nothing. If the choice ends an answer with hidden
// calls only, its end is returned separately, to be held back together with all that follows.
func (f *filter) filterChoice(choice rawjson.Value) (now, end []byte) {
	original := split.Member(choice, "delta").Raw
	if piece := assemble.Decode(original); piece != nil {
		if f.message == nil {
			f.message = assemble.Piece{}
		}
		assemble.Add(f.message, piece)
	}
	delta := f.filterCalls(original)
	if f.Answers > 0 { // only the first answer states a role
		delta = split.WithoutMember(delta, "role")
	}
	now = choice.Raw
	if !bytes.Equal(delta, original) {
		now = split.WithMember(now, "delta", delta)
	}
	if string(delta) == "{}" && len(original) > len("{}") { // nothing is left
		now = nil
	}
	reason := split.Member(choice, "finish_reason").Text()
	if reason == "" {
		return now, nil
	}
	f.finish = reason
	end = split.WithMember(choice.Raw, "delta", []byte("{}"))
	if f.hidesAll() {
		end = split.WithMember(end, "finish_reason", rawjson.AppendQuote(nil, finishWithoutCalls(reason)))
		switch {
		case f.complete() && string(delta) == "{}":
			return nil, end
		case f.complete():
			return split.WithMember(now, "finish_reason", []byte("null")), end
		}
	}
	if now == nil {
		return end, nil
	}
	return now, nil
}

// filterCalls removes hidden calls from a delta and renumbers the others.
func (f *filter) filterCalls(delta []byte) []byte {
	var shown [][]byte
	changed := false
	for i, raw := range split.Elements(split.Member(rawjson.Value{Raw: delta}, "tool_calls")) {
		p := pieceOf(rawjson.ValueOf(raw), i)
		number, hidden := f.number(&p)
		switch {
		case hidden:
			changed = true
		case p.numbered && p.index != number:
			changed = true
			shown = append(shown, split.WithMember(raw, "index", assemble.Encode(number)))
		default:
			shown = append(shown, raw)
		}
	}
	switch {
	case !changed:
		return delta
	case len(shown) == 0:
		return split.WithoutMember(delta, "tool_calls")
	}
	return split.WithMember(delta, "tool_calls", split.List(shown))
}

// number returns the index of a call as the client counts, or that the call is hidden. A piece with another id at the same
// index starts a new call, since some servers give every call the index 0.
func (f *filter) number(p *piece) (number int, hidden bool) {
	at := len(f.calls) - 1
	for at >= 0 && f.calls[at].index != p.index {
		at--
	}
	begins := p.name != ""
	if p.custom {
		begins = p.id != ""
	}
	if begins && (at < 0 || p.id != "" && p.id != f.calls[at].id) {
		call := streamedCall{id: p.id, index: p.index, number: f.visible, hidden: !p.custom && f.Hidden(p.name)}
		if !call.hidden {
			f.visible++
		}
		at = len(f.calls)
		f.calls = append(f.calls, call)
	}
	if at < 0 || f.visible == len(f.calls) { // nothing is hidden
		return p.index, false
	}
	return f.calls[at].number, f.calls[at].hidden
}
