package chat

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ dialect.Hider = (*Dialect)(nil)

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
	return assemble.Strain(streamed, &strainer{hidden: hidden})
}

// strainer is what is known of the answers so far.
type strainer struct {
	hidden func(tool string) bool
	text   string // what the client has got of the answers before this one
	used   []byte // what they have used

	answers     int           // before this one
	id, created rawjson.Value // of the first chunk
	heard
}

// heard is what is known of one answer.
type heard struct {
	message assemble.Piece
	usage   []byte
	finish  string
	ended   bool

	calls     int // of a stream, for the client to answer
	indexes   map[string]int
	concealed map[string]bool // calls, by what names them in chunks
	last      map[string]string
}

// Next begins another answer.
func (s *strainer) Next() {
	assemble.Settle(s.message)
	text, _ := s.message["content"].(string)
	s.text, s.used = s.text+text, split.Sum(s.used, s.usage)
	s.answers, s.heard = s.answers+1, heard{}
}

// called gives the calls of the message.
func (s *strainer) called() []any {
	calls, _ := s.message["tool_calls"].([]any)
	return calls
}

// conceals reports whether a call is of a hidden tool.
func (s *strainer) conceals(call any) bool {
	c, _ := call.(assemble.Piece)
	function, _ := c["function"].(assemble.Piece)
	name, _ := function["name"].(string)
	return name != "" && s.hidden(name)
}

// Said is what the model said, as it goes back to upstream.
func (s *strainer) Said() (said dialect.Said) {
	said.Whole = (s.ended || s.finish != "") && s.finish != "length" && s.finish != "content_filter"
	if s.message == nil {
		return said
	}
	assemble.Settle(s.message)
	calls := s.called()
	for _, call := range calls {
		c, _ := call.(assemble.Piece)
		delete(c, "index")
		if !s.conceals(call) {
			said.Own = true
			continue
		}
		function, _ := c["function"].(assemble.Piece)
		id, _ := c["id"].(string)
		name, _ := function["name"].(string)
		arguments, _ := function["arguments"].(string)
		said.Calls = append(said.Calls, session.Call{ID: id, Name: name, Arguments: arguments})
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
	if _, plain := m["content"].(string); plain || m["content"] == nil {
		said.Message = assemble.Encode(m)
	}
	return said
}

// Echo is the message as the client has it.
func (s *strainer) Echo() []byte {
	if s.message == nil {
		return nil
	}
	assemble.Settle(s.message)
	text, plain := s.message["content"].(string)
	if !plain && s.message["content"] != nil {
		return nil
	}
	m := assemble.Piece{"role": "assistant", "content": s.text + text}
	if calls := slices.DeleteFunc(slices.Clone(s.called()), s.conceals); len(calls) > 0 {
		m["tool_calls"] = calls
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
	if usage := split.Member(rawjson.ValueOf(body), "usage"); usage.Kind == rawjson.Object {
		s.usage = bytes.Clone(usage.Raw)
	}
}

func firstChoice(body []byte) rawjson.Value {
	for element := range rawjson.Elements(split.Member(rawjson.ValueOf(body), "choices").Raw) {
		return element
	}
	return rawjson.Value{}
}

// Rest is an answer that is not streamed, as the client gets it.
func (s *strainer) Rest(body []byte) []byte {
	calls := s.called()
	own := slices.DeleteFunc(slices.Clone(calls), s.conceals)
	if s.message == nil || s.text == "" && len(s.used) == 0 && len(own) == len(calls) {
		return body
	}
	choice := firstChoice(body)
	message, finish := split.Member(choice, "message").Raw, s.finish
	if len(own) < len(calls) {
		message = split.WithoutMember(message, "tool_calls")
		if len(own) > 0 {
			message = split.WithMember(message, "tool_calls", assemble.Encode(own))
		} else {
			finish = ending(finish)
		}
	}
	if text, plain := s.message["content"].(string); s.text != "" && (plain || s.message["content"] == nil) {
		message = split.WithMember(message, "content", rawjson.AppendQuote(nil, s.text+text))
	}
	if len(s.usage) > 0 {
		body = split.WithMember(body, "usage", split.Sum(s.used, s.usage))
	}
	with := split.WithMember(split.WithMember(choice.Raw, "message", message), "finish_reason", rawjson.AppendQuote(nil, finish))
	return withChoice(body, with)
}

// alone reports whether all calls are of hidden tools, and there are some.
func (s *strainer) alone() bool {
	return s.calls == 0 && len(s.concealed) > 0 && s.finish != "length" && s.finish != "content_filter"
}

// Event takes a chunk.
func (s *strainer) Event(data []byte) assemble.Passing {
	if string(data) == split.Done {
		if s.ended = true; s.alone() {
			return assemble.Passing{End: data}
		}
		return assemble.Passing{Text: data}
	}
	all := rawjson.ValueOf(data)
	out := data
	if s.answers == 0 && s.id.Kind == 0 {
		s.id, s.created = kept(split.Member(all, "id")), kept(split.Member(all, "created"))
	}
	if s.answers > 0 {
		out = renamed(renamed(out, "id", s.id), "created", s.created)
	}
	usage := split.Member(all, "usage")
	if usage.Kind == rawjson.Object {
		if s.usage = bytes.Clone(usage.Raw); len(s.used) > 0 {
			out = split.WithMember(out, "usage", split.Sum(s.used, s.usage))
		}
	}
	for element := range rawjson.Elements(split.Member(all, "choices").Raw) {
		if split.Integer(split.Member(element, "index")) != 0 {
			continue
		}
		with, end := s.choose(element)
		switch {
		case end != nil && with != nil:
			return assemble.Passing{Text: withChoice(out, with), End: withChoice(out, end)}
		case end != nil:
			return assemble.Passing{End: withChoice(out, end)}
		case with == nil && usage.Kind != rawjson.Object:
			return assemble.Passing{}
		case len(with) == 0 || &with[0] != &element.Raw[0]:
			out = withChoice(out, with)
		}
	}
	return assemble.Passing{Text: out}
}

// withChoice gives a chunk with another choice, or none.
func withChoice(chunk, choice []byte) []byte {
	return split.WithMember(chunk, "choices", slices.Concat([]byte{'['}, choice, []byte{']'}))
}

// kept is a value that outlives what it was read of.
func kept(v rawjson.Value) rawjson.Value {
	v.Raw = bytes.Clone(v.Raw)
	return v
}

// renamed gives a chunk with the value that the first one has.
func renamed(chunk []byte, name string, v rawjson.Value) []byte {
	if v.Kind == 0 || split.Member(rawjson.ValueOf(chunk), name).Kind == 0 {
		return chunk
	}
	return split.WithMember(chunk, name, v.Raw)
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
	if s.answers > 0 && split.Member(delta, "role").Kind != 0 {
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
	if end = split.WithMember(raw, "delta", []byte("{}")); s.calls == 0 && len(s.concealed) > 0 {
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
	return split.WithMember(delta.Raw, "tool_calls", slices.Concat([]byte{'['}, bytes.Join(stay, []byte{','}), []byte{']'}))
}

// number is the place of a call among those that the client sees, and whether it is hidden. A piece with another id at the same index
// begins another call, since some servers give each the index 0.
func (s *strainer) number(p *piece) (number int, hides bool) {
	if s.indexes == nil {
		s.indexes, s.concealed, s.last = map[string]int{}, map[string]bool{}, map[string]string{}
	}
	index := strconv.Itoa(p.index)
	name, begins := s.last[index], p.name != "" && !p.custom || p.id != "" && p.custom
	if begins && (name == "" || p.id != "" && index+" "+p.id != name) {
		name = index + " " + p.id
		s.last[index] = name
		if s.concealed[name] = !p.custom && s.hidden(p.name); !s.concealed[name] {
			delete(s.concealed, name)
			s.indexes[name] = s.calls
			s.calls++
		}
	}
	if s.concealed[name] {
		return 0, true
	}
	if number, known := s.indexes[name]; known && len(s.concealed) > 0 {
		return number, false
	}
	return p.index, false
}
