package chat

import (
	"bytes"
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hides reports whether the client sends tools, the model may choose, and the client wants one choice.
func (d *Dialect) Hides(r *dialect.Request) bool {
	outside := r.Outside()
	n := split.Member(rawjson.ValueOf(outside), "n")
	return (n.Kind != rawjson.Number || string(n.Raw) == "1") && assemble.Takes(outside)
}

// Offer adds functions to a request's tools.
func (d *Dialect) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	return assemble.Form{Before: `{"type":"function","function":{`, Parameters: "parameters", After: "}}"}.Offer(r, tools)
}

// Result writes the result of a call.
func (d *Dialect) Result(call session.Call, text string) []byte {
	out := rawjson.AppendQuote([]byte(`{"role":"tool","tool_call_id":`), call.ID)
	return append(rawjson.AppendQuote(append(out, `,"content":`...), text), '}')
}

// Strain begins to take calls of hidden tools out of answers.
func (d *Dialect) Strain(streamed bool, hidden func(tool string) bool) dialect.Strainer {
	return assemble.Strain(streamed, &strainer{Parts: assemble.Parts{Hidden: hidden}})
}

// strainer is what is known of the answers so far. Their parts are calls.
type strainer struct {
	assemble.Parts
	text        string // what the client has got of the answers before this one
	id, created []byte // of the first chunk
	heard
}

// heard is what is known of one answer.
type heard struct {
	message assemble.Piece
	finish  string
	ended   bool

	calls []begun // of a stream
	shown int     // of them, for the client to answer
}

// begun is a call of a stream.
type begun struct {
	id            string
	index, number int // as upstream and the client count it
	hidden        bool
}

// Next begins another answer.
func (s *strainer) Next() {
	text, _ := s.content()
	s.text, s.heard = s.text+text, heard{}
	s.Parts.Next()
}

// content is the text of the message. It is plain if there is nothing else in the content.
func (s *strainer) content() (text string, plain bool) {
	assemble.Settle(s.message)
	text, plain = s.message["content"].(string)
	return text, plain || s.message["content"] == nil
}

// whole reports whether the answer was not cut off, as far as is known.
func (s *strainer) whole() bool { return s.finish != "length" && s.finish != "content_filter" }

// Said is what the model said, as it goes back to upstream.
func (s *strainer) Said() dialect.Said {
	s.Parts.Parts = nil
	for call := range rawjson.Elements(split.Member(rawjson.ValueOf(assemble.Encode(s.message)), "tool_calls").Raw) {
		s.add(call)
	}
	said, calls := s.Parts.Said((s.ended || s.finish != "") && s.whole())
	if _, plain := s.content(); s.message == nil || !plain {
		return said
	}
	m := assemble.Piece{"role": "assistant", "content": nil}
	for key, v := range s.message {
		switch {
		case v == nil, key == "annotations", key == "audio": // what upstream says, and takes back in another form or not at all
		case key == "content" && v == "":
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

// add takes a call of the message.
func (s *strainer) add(call rawjson.Value) {
	part := assemble.Part{Raw: split.WithoutMember(call.Raw, "index")}
	if name := split.Member(call, "function", "name").Text(); name != "" && s.Hidden(name) {
		part.Call = &session.Call{ID: split.Member(call, "id").Text(), Name: name, Arguments: split.Member(call, "function", "arguments").Text()}
	} else {
		part.Seen, part.Own = part.Raw, true
	}
	s.Parts.Parts = append(s.Parts.Parts, part)
}

// Echo is the message as the client has it.
func (s *strainer) Echo() []byte {
	text, plain := s.content()
	if s.message == nil || !plain {
		return nil
	}
	m := assemble.Piece{"role": "assistant", "content": s.text + text}
	if calls := s.Seen(); len(calls) > 0 {
		m["tool_calls"] = assemble.Raw(split.List(calls))
	}
	return assemble.Encode(m)
}

// ending is how the answer ends for a client that has got no call.
func ending(reason string) string {
	if reason == "tool_calls" || reason == "function_call" {
		return "stop"
	}
	return reason
}

// Whole takes an answer that is not streamed.
func (s *strainer) Whole(body []byte) {
	c := firstChoice(body)
	s.message, s.finish, s.ended = assemble.Decode(split.Member(c, "message").Raw), split.Member(c, "finish_reason").Text(), true
	s.Meter(split.Member(rawjson.ValueOf(body), "usage"))
}

func firstChoice(body []byte) rawjson.Value {
	for element := range rawjson.Elements(split.Member(rawjson.ValueOf(body), "choices").Raw) {
		return element
	}
	return rawjson.Value{}
}

// Rest is an answer that is not streamed, as the client gets it.
func (s *strainer) Rest(body []byte) []byte {
	if s.message == nil || !s.Differs() {
		return body
	}
	choice := firstChoice(body)
	message, finish := split.Member(choice, "message").Raw, s.finish
	if seen := s.Seen(); len(seen) < len(s.Parts.Parts) {
		message = split.WithoutMember(message, "tool_calls")
		if len(seen) > 0 {
			message = split.WithMember(message, "tool_calls", split.List(seen))
		} else {
			finish = ending(finish)
		}
	}
	if text, plain := s.content(); s.text != "" && plain {
		message = split.WithMember(message, "content", rawjson.AppendQuote(nil, s.text+text))
	}
	if total := s.Total(); total != nil {
		body = split.WithMember(body, "usage", total)
	}
	return withChoice(body, split.WithMember(split.WithMember(choice.Raw, "message", message), "finish_reason", rawjson.AppendQuote(nil, finish)))
}

// alone reports whether all calls are of hidden tools, and there are some.
func (s *strainer) alone() bool { return s.shown == 0 && len(s.calls) > 0 && s.whole() }

// Event takes a chunk.
func (s *strainer) Event(data []byte) assemble.Passing {
	if string(data) == split.Done {
		if s.ended = true; s.alone() {
			return assemble.Passing{End: data}
		}
		return assemble.Passing{Text: data}
	}
	all, out := rawjson.ValueOf(data), data
	switch {
	case s.Answers > 0:
		out = renamed(renamed(out, "id", s.id), "created", s.created)
	case s.id == nil:
		s.id, s.created = bytes.Clone(split.Member(all, "id").Raw), bytes.Clone(split.Member(all, "created").Raw)
	}
	usage := split.Member(all, "usage")
	if s.Meter(usage); usage.Kind == rawjson.Object && len(s.Used) > 0 {
		out = split.WithMember(out, "usage", s.Total())
	}
	for choice := range rawjson.Elements(split.Member(all, "choices").Raw) {
		if split.Integer(split.Member(choice, "index")) != 0 {
			continue
		}
		with, end := s.choose(choice)
		switch {
		case end != nil && with != nil:
			return assemble.Passing{Text: withChoice(out, with), End: withChoice(out, end)}
		case end != nil:
			return assemble.Passing{End: withChoice(out, end)}
		case with == nil && usage.Kind != rawjson.Object:
			return assemble.Passing{}
		case !bytes.Equal(with, choice.Raw):
			out = withChoice(out, with)
		}
	}
	return assemble.Passing{Text: out}
}

// withChoice gives a chunk with another choice, or none.
func withChoice(chunk, choice []byte) []byte {
	return split.WithMember(chunk, "choices", split.List([][]byte{choice}))
}

// renamed gives a chunk with the value that the first one has.
func renamed(chunk []byte, name string, value []byte) []byte {
	if value == nil || split.Member(rawjson.ValueOf(chunk), name).Kind == 0 {
		return chunk
	}
	return split.WithMember(chunk, name, value)
}

// choose gives what the client gets of a choice, nil for nothing. Where it ends an answer that calls hidden tools alone, its end comes
// apart, to be held back with all that follows.
func (s *strainer) choose(choice rawjson.Value) (now, end []byte) {
	raw, came := choice.Raw, split.Member(choice, "delta")
	delta := came
	if piece := assemble.Decode(delta.Raw); piece != nil {
		if s.message == nil {
			s.message = assemble.Piece{}
		}
		assemble.Add(s.message, piece)
	}
	delta.Raw = s.strain(delta)
	if s.Answers > 0 && split.Member(delta, "role").Kind != 0 {
		delta.Raw = split.WithoutMember(delta.Raw, "role")
	}
	if now = raw; !bytes.Equal(delta.Raw, came.Raw) {
		now = split.WithMember(raw, "delta", delta.Raw)
	}
	if string(delta.Raw) == "{}" && len(came.Raw) > len("{}") {
		now = nil
	}
	reason := split.Member(choice, "finish_reason").Text()
	if s.finish = cmp.Or(reason, s.finish); reason == "" {
		return now, nil
	}
	if end = split.WithMember(raw, "delta", []byte("{}")); s.shown == 0 && len(s.calls) > 0 {
		end = split.WithMember(end, "finish_reason", rawjson.AppendQuote(nil, ending(reason)))
	}
	switch {
	case !s.alone() && now == nil:
		return end, nil
	case !s.alone():
		return now, nil
	case string(delta.Raw) == "{}":
		return nil, end
	}
	return split.WithMember(now, "finish_reason", []byte("null")), end
}

// strain takes hidden calls out of a delta, and numbers those that stay.
func (s *strainer) strain(delta rawjson.Value) []byte {
	list := split.Member(delta, "tool_calls")
	if list.Kind != rawjson.Array {
		return delta.Raw
	}
	var stay [][]byte
	changed, position := false, 0
	for element := range rawjson.Elements(list.Raw) {
		p := pieceOf(element, position)
		number, hides := s.number(&p)
		position++
		switch {
		case hides:
			changed = true
		case p.numbered && p.index != number:
			changed = true
			stay = append(stay, split.WithMember(element.Raw, "index", assemble.Encode(number)))
		default:
			stay = append(stay, element.Raw)
		}
	}
	switch {
	case !changed:
		return delta.Raw
	case len(stay) == 0:
		return split.WithoutMember(delta.Raw, "tool_calls")
	}
	return split.WithMember(delta.Raw, "tool_calls", split.List(stay))
}

// number is the place of a call among those that the client sees, and whether it is hidden. A piece with another id at the same index
// begins another call, since some servers give each the index 0.
func (s *strainer) number(p *piece) (number int, hides bool) {
	at := len(s.calls) - 1
	for at >= 0 && s.calls[at].index != p.index {
		at--
	}
	if begins := p.name != "" && !p.custom || p.id != "" && p.custom; begins && (at < 0 || p.id != "" && p.id != s.calls[at].id) {
		c := begun{id: p.id, index: p.index, number: s.shown, hidden: !p.custom && s.Hidden(p.name)}
		if !c.hidden {
			s.shown++
		}
		at, s.calls = len(s.calls), append(s.calls, c)
	}
	if at < 0 || s.shown == len(s.calls) { // nothing is hidden
		return p.index, false
	}
	return s.calls[at].number, s.calls[at].hidden
}
