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
	newest  map[int]int // the newest call with an index, as its position in calls
	visible int         // number of calls that the client receives
}

// streamedCall is a call in a stream.
type streamedCall struct {
	id     string
	index  int // as upstream counts
	number int // as the client counts
	hidden bool

	arguments int // bytes of a hidden call's so far
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

// Forget drops the answers and keeps no more of them.
func (f *filter) Forget() {
	f.State.Forget()
	f.message, f.text = nil, ""
}

// complete reports whether the answer was not cut off, as far as is known.
func (f *filter) complete() bool { return f.finish != "length" && f.finish != "content_filter" }

// Said returns what the model said in this answer, with the message as it is sent back to upstream.
func (f *filter) Said() dialect.Said {
	f.Parts = nil
	if f.Differs() && f.message != nil {
		for call := range rawjson.Elements(assemble.Encode(f.message["tool_calls"])) {
			f.addCall(call)
		}
	}
	said, calls := f.Summary((f.ended || f.Framed || f.finish != "") && f.complete())
	text, plain := f.content()
	if f.message == nil || !plain || !f.Differs() {
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
		function := split.Member(call, "function")
		arguments := split.Member(function, "arguments").Text()
		if len(arguments) > dialect.MaxArguments {
			arguments = arguments[:dialect.MaxArguments+1]
			part.Raw = split.WithMember(part.Raw, "function", split.WithMember(function.Raw, "arguments", []byte(`"{}"`)))
		}
		part.Call = &session.Call{ID: split.Member(call, "id").Text(), Name: name, Arguments: arguments}
	} else {
		part.Shown = part.Raw
	}
	f.Parts = append(f.Parts, part)
}

// Echo returns the message as the client received it.
func (f *filter) Echo() []byte {
	text, plain := f.content()
	if f.message == nil || !plain || !f.Differs() {
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
	message := split.Member(choice, "message")
	if message.Kind != rawjson.Object {
		return
	}
	f.message = assemble.Piece{}
	for key, v := range rawjson.Members(message.Raw) {
		name := string(key.Name(make([]byte, 0, len(key.Raw))))
		switch v.Kind {
		case rawjson.String:
			f.message[name] = v.Text()
		case rawjson.Null:
			f.message[name] = nil
		default:
			f.message[name] = assemble.Raw(v.Raw)
		}
	}
	for i, call := range split.Elements(split.Member(message, "tool_calls")) {
		p := pieceOf(rawjson.ValueOf(call), i)
		p.index = i
		f.number(&p)
	}
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
	delta, whole := f.filterCalls(original)
	f.add(whole)
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

// add adds a delta to the message.
func (f *filter) add(delta []byte) {
	if !f.Forgot && !assemble.Decodes(delta) {
		f.Forget()
	}
	if f.Forgot {
		return
	}
	if piece := assemble.Decode(delta); piece != nil {
		if f.message == nil {
			f.message = assemble.Piece{}
		}
		f.Grow(assemble.Add(f.message, piece))
	}
}

// filterCalls removes hidden calls from a delta and renumbers the others. It also returns the delta with the hidden calls, whose arguments are cut
// to one byte more than dialect.MaxArguments.
func (f *filter) filterCalls(delta []byte) (visible, whole []byte) {
	var shown, all [][]byte
	changed, cut := false, false
	for i, raw := range split.Elements(split.Member(rawjson.Value{Raw: delta}, "tool_calls")) {
		p := pieceOf(rawjson.ValueOf(raw), i)
		number, call := f.number(&p)
		switch {
		case call != nil && call.hidden:
			changed = true
			if room := dialect.MaxArguments + 1 - call.arguments; len(p.arguments) > room {
				p.arguments = p.arguments[:room]
				function := split.WithMember(split.Member(rawjson.ValueOf(raw), "function").Raw, "arguments", rawjson.AppendQuote(nil, p.arguments))
				raw, cut = split.WithMember(raw, "function", function), true
			}
			call.arguments += len(p.arguments)
		case p.numbered && p.index != number:
			changed = true
			shown = append(shown, split.WithMember(raw, "index", assemble.Encode(number)))
		default:
			shown = append(shown, raw)
		}
		all = append(all, raw)
	}
	visible, whole = delta, delta
	if cut {
		whole = split.WithMember(delta, "tool_calls", split.List(all))
	}
	switch {
	case !changed:
	case len(shown) == 0:
		visible = split.WithoutMember(delta, "tool_calls")
	default:
		visible = split.WithMember(delta, "tool_calls", split.List(shown))
	}
	return visible, whole
}

// callSize is about what is kept of each call of a stream, in bytes.
const callSize = 128

// number returns the index of a call as the client counts, and the call if any is hidden. A piece with another id at the same
// index starts a new call, since some servers give every call the index 0.
func (f *filter) number(p *piece) (number int, _ *streamedCall) {
	at, known := f.newest[p.index]
	if !known {
		at = -1
	}
	begins := p.name != ""
	if p.custom {
		begins = p.id != ""
	}
	if begins && (at < 0 || p.id != "" && p.id != f.calls[at].id) {
		call := streamedCall{id: p.id, index: p.index, number: f.visible, hidden: !p.custom && f.Hidden(p.name)}
		if call.hidden {
			f.Concealed++
		} else {
			f.visible++
			f.Own++
		}
		at = len(f.calls)
		f.calls = append(f.calls, call)
		if f.newest == nil {
			f.newest = map[int]int{}
		}
		f.newest[p.index] = at
		f.Grow(callSize)
	}
	if at < 0 || f.visible == len(f.calls) { // nothing is hidden
		return p.index, nil
	}
	return f.calls[at].number, &f.calls[at]
}
