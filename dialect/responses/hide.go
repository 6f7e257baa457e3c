package responses

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hides reports whether the client sends tools, the model may choose, and upstream keeps nothing: a later request could go on from a call
// that the client has never seen.
func (d *Dialect) Hides(r *dialect.Request) bool {
	return !r.Stores && r.Kept == (session.Kept{}) && assemble.Takes(r.Outside())
}

// Offer adds functions to a request's tools.
func (d *Dialect) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	return assemble.Form{Before: `{"type":"function","strict":false,`, Parameters: "parameters", After: "}"}.Offer(r, tools)
}

// Result writes the result of a call.
func (d *Dialect) Result(call session.Call, text string) []byte {
	out := rawjson.AppendQuote([]byte(`{"type":"function_call_output","call_id":`), call.ID)
	return append(rawjson.AppendQuote(append(out, `,"output":`...), text), '}')
}

// Strain begins to take calls of hidden tools out of answers.
func (d *Dialect) Strain(streamed bool, hidden func(tool string) bool) dialect.Strainer {
	return assemble.Strain(streamed, &strainer{Parts: assemble.Parts{Hidden: hidden}, sequence: -1})
}

// strainer is what is known of the answers so far. Their parts are items.
//
// Reasoning is bound to the item behind it: where that is a hidden call, the client does not get the reasoning either. So the reasoning of a
// stream waits for what comes behind it. Items that follow in the same answer have other ids for the client then: upstream would look for
// the reasoning by their own.
type strainer struct {
	assemble.Parts
	id    []byte // of the first answer
	whole bool   // this one was completed

	renames  bool  // reasoning of this answer was taken out, and none that stays has come since
	waiting  []int // items of reasoning that wait
	sequence int   // of the next event; negative: none has come
	back     int   // that of the first event which waits, or is held back
}

func (s *strainer) Next() {
	s.Parts.Next()
	s.whole, s.renames, s.waiting, s.sequence = false, false, nil, s.back
}

// conceals reports whether an item is a call of a hidden tool.
func (s *strainer) conceals(it *item) bool {
	return it.is("function_call") && s.Hidden(it.Get("name").Text())
}

// add takes an item that has come, whole.
func (s *strainer) add(v rawjson.Value) {
	it, all := itemOf(v), s.Parts.Parts
	part := assemble.Part{Raw: bytes.Clone(v.Raw)}
	switch {
	case s.conceals(it):
		call := it.called()
		part.Call = &call
		s.unsee()
	case it.isReasoning():
		part.Seen, s.renames = part.Raw, false
	case it.class() == result: // of a call that the server has met itself
		part.Seen = part.Raw
		for i := range all {
			all[i].Own = all[i].Own && itemOf(rawjson.ValueOf(all[i].Raw)).calls().Text() != it.answers().Text()
		}
	default:
		part.Seen, part.Own = s.renamed(part.Raw, "id"), it.calls().Kind == rawjson.String
	}
	s.Parts.Parts = append(all, part)
}

// unsee takes the reasoning at the end of this answer out.
func (s *strainer) unsee() {
	all := s.Parts.Parts
	for i := len(all) - 1; i >= 0 && all[i].Seen != nil && itemOf(rawjson.ValueOf(all[i].Raw)).isReasoning(); i-- {
		all[i].Seen, s.renames = nil, true
	}
}

// renamed gives an object with another id, if upstream would look for reasoning by its own. A request for approval is answered by its id.
func (s *strainer) renamed(object []byte, key string) []byte {
	v := rawjson.ValueOf(object)
	id := split.Member(v, key)
	if !s.renames || id.Kind != rawjson.String || split.Member(v, "type").Is("mcp_approval_request") {
		return object
	}
	return split.WithMember(object, key, slices.Concat([]byte{'"'}, id.Inner(), []byte(`-1"`)))
}

// Said is what the model said, as it goes back to upstream: without reasoning that was kept there, which nothing can be told of.
func (s *strainer) Said() dialect.Said {
	out, all := s.Parts.Said(s.whole)
	lost := false
	var told [][]byte
	for _, raw := range all {
		it := itemOf(rawjson.ValueOf(raw))
		switch {
		case it.isReasoning() && it.hollow():
			lost = true
			continue
		case it.isReasoning():
			lost = false
		case lost:
			raw = it.anonymous()
		}
		told = append(told, raw)
	}
	out.Message = split.Join(told)
	if len(told) == 0 {
		out.Message = nil
	}
	return out
}

// hollow reports whether an item of reasoning says nothing by itself.
func (it *item) hollow() bool {
	sealed := split.Member(rawjson.ValueOf(it.Raw), "encrypted_content")
	return len(sealed.Inner())+len(it.Get("signature").Inner()) == 0 && !split.HasElements(it.Get("content"))
}

// Echo is the items that the client has.
func (s *strainer) Echo() []byte {
	if all := s.Seen(); len(all) > 0 {
		return split.Join(all)
	}
	return nil
}

// end takes the response that an answer ends with. Of a stream that told of no item before, it has all. Where another answer follows, the
// client does not get the reasoning at the end of this one: what it was bound to never came.
func (s *strainer) end(response rawjson.Value) {
	if len(s.Parts.Parts) == 0 {
		for element := range rawjson.Elements(split.Member(response, "output").Raw) {
			s.add(element)
		}
	}
	if s.whole = split.Member(response, "status").Is("completed"); s.Said().Alone() {
		s.unsee()
	}
	s.Meter(split.Member(response, "usage"))
	if s.id == nil {
		s.id = bytes.Clone(split.Member(response, "id").Raw)
	}
}

// Whole takes an answer that is not streamed.
func (s *strainer) Whole(body []byte) { s.end(rawjson.ValueOf(body)) }

// Rest is it, as the client gets it.
func (s *strainer) Rest(body []byte) []byte { return s.ended(s.untold(rawjson.ValueOf(body))) }

// untold is a response that does not tell of hidden tools.
func (s *strainer) untold(response rawjson.Value) []byte {
	tools := split.Member(response, "tools")
	rest := split.Without(tools, func(t rawjson.Value) bool { return s.Hidden(split.Member(t, "name").Text()) })
	switch {
	case tools.Kind != rawjson.Array || len(rest) == len(tools.Raw):
		return response.Raw
	case rest == nil:
		rest = []byte("[]")
	}
	return split.WithMember(response.Raw, "tools", rest)
}

// ended is the response at the end, with all that the client has got.
func (s *strainer) ended(response []byte) []byte {
	if !s.Differs() {
		return response
	}
	response = split.WithMember(response, "output", slices.Concat([]byte{'['}, s.Echo(), []byte{']'}))
	if total := s.Total(); total != nil {
		response = split.WithMember(response, "usage", total)
	}
	if len(s.id) > 0 {
		response = split.WithMember(response, "id", s.id)
	}
	return response
}

// Event takes an event.
func (s *strainer) Event(data []byte) assemble.Passing {
	v, begun := rawjson.ValueOf(data), len(s.waiting)
	response, item := split.Member(v, "response"), split.Member(v, "item")
	if n := split.Member(v, "sequence_number"); s.sequence < 0 && n.Kind == rawjson.Number {
		s.sequence = split.Integer(n)
	}
	switch kind := split.Member(v, "type").Text(); kind {
	case "response.created", "response.in_progress", "response.queued":
		if s.Answers > 0 {
			return assemble.Passing{}
		}
		return assemble.Passing{Text: s.numbered(split.WithMember(data, "response", s.untold(response)))}
	case "response.completed", "response.incomplete", "response.failed":
		s.end(response)
		alone := s.Said().Alone()
		drop := alone && s.retract()
		s.waiting, s.back = nil, s.sequence
		data = s.numbered(split.WithMember(data, "response", s.ended(s.untold(response))))
		if alone {
			return assemble.Passing{End: data, Drop: drop}
		}
		return assemble.Passing{Text: data}
	case "response.output_item.added", "response.output_item.done":
		if it := itemOf(item); s.conceals(it) {
			return s.conceal(kind, item, split.Integer(split.Member(v, "output_index")))
		}
		data = s.itemEvent(kind, item, data)
	}
	if at := split.Member(v, "output_index"); at.Kind == rawjson.Number {
		data = s.Numbered(s.renamed(data, "item_id"), "output_index", split.Integer(at))
	}
	if data == nil {
		return assemble.Passing{}
	}
	if begun == 0 && len(s.waiting) > 0 {
		s.back = s.sequence
	}
	return assemble.Passing{Text: s.numbered(data), Wait: len(s.waiting) > 0}
}

// conceal takes an event of a hidden call. The reasoning before it goes with it.
func (s *strainer) conceal(kind string, item rawjson.Value, index int) assemble.Passing {
	drop := s.retract()
	s.Conceal(index)
	if kind == "response.output_item.done" {
		s.add(item)
	}
	return assemble.Passing{Drop: drop}
}

// retract takes back the numbers of what waits. It reports whether anything did.
func (s *strainer) retract() bool {
	if len(s.waiting) == 0 {
		return false
	}
	s.sequence = s.back
	s.Forget(s.waiting)
	s.waiting = nil
	return true
}

// itemEvent takes an event that begins or ends an item which the client may get.
func (s *strainer) itemEvent(kind string, item rawjson.Value, data []byte) []byte {
	it, at := itemOf(item), split.Member(rawjson.ValueOf(data), "output_index")
	index, begins := split.Integer(at), kind == "response.output_item.added"
	if begins || !s.Knows(index) {
		s.Begin(index)
	}
	switch {
	case !begins:
		s.add(item)
		return split.WithMember(data, "item", s.Parts.Parts[len(s.Parts.Parts)-1].Seen)
	case it.isReasoning():
		s.waiting, s.renames = append(s.waiting, index), false
		return data
	}
	s.waiting = nil
	return split.WithMember(data, "item", s.renamed(item.Raw, "id"))
}

// numbered gives an event with its place among those that the client gets.
func (s *strainer) numbered(event []byte) []byte {
	n := split.Member(rawjson.ValueOf(event), "sequence_number")
	if n.Kind != rawjson.Number {
		return event
	}
	if split.Integer(n) != s.sequence {
		event = split.WithMember(event, "sequence_number", assemble.Encode(s.sequence))
	}
	s.sequence++
	return event
}
