package messages

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hides reports whether the client sends tools, and the model may choose.
func (d *Dialect) Hides(r *dialect.Request) bool { return assemble.Takes(r.Outside()) }

// Offer adds tools to a request's own.
func (d *Dialect) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	return assemble.Form{Before: "{", Parameters: "input_schema", After: "}"}.Offer(r, tools)
}

// Result writes the result of a call.
func (d *Dialect) Result(call session.Call, text string) []byte {
	out := rawjson.AppendQuote([]byte(`{"type":"tool_result","tool_use_id":`), call.ID)
	return append(rawjson.AppendQuote(append(out, `,"content":`...), text), '}')
}

// Strain begins to take calls of hidden tools out of answers.
func (d *Dialect) Strain(streamed bool, hidden func(tool string) bool) dialect.Strainer {
	return assemble.Strain(streamed, &strainer{Parts: assemble.Parts{Hidden: hidden}})
}

// strainer is what is known of the answers so far. Their parts are blocks.
type strainer struct {
	assemble.Parts
	stop string // of this answer

	block assemble.Piece // that is being read
	input []byte         // of it, if it is a call
}

func (s *strainer) Next() {
	s.Parts.Next()
	s.stop, s.block = "", nil
}

// add takes a block that has come, whole.
func (s *strainer) add(raw []byte) {
	block := rawjson.ValueOf(raw)
	b := assemble.Part{Raw: bytes.Clone(raw)}
	b.Seen = b.Raw
	switch {
	case s.conceals(block):
		o := split.Read(block, blockKeys)
		call := callOf(&o)
		b.Seen, b.Call = nil, &call
	case split.Member(block, "type").Is("tool_use"):
		b.Own = true
	}
	s.Parts.Parts = append(s.Parts.Parts, b)
}

// conceals reports whether a block is a call of a hidden tool.
func (s *strainer) conceals(block rawjson.Value) bool {
	return split.Member(block, "type").Is("tool_use") && s.Hidden(split.Member(block, "name").Text())
}

// Said is what the model said, as it goes back to upstream.
func (s *strainer) Said() dialect.Said {
	said, all := s.Parts.Said(s.stop == "tool_use" || s.stop == "end_turn" || s.stop == "stop_sequence")
	said.Message = spoken(all)
	return said
}

func spoken(blocks [][]byte) []byte {
	if len(blocks) == 0 {
		return nil
	}
	return slices.Concat([]byte(`{"role":"assistant","content":`), split.List(blocks), []byte{'}'})
}

// Echo is the message as the client has it.
func (s *strainer) Echo() []byte { return spoken(s.Seen()) }

// ending is how the answer ends for a client that has got no call.
func (s *strainer) ending() []byte {
	stop := s.stop
	if said := s.Said(); stop == "tool_use" && len(said.Calls) > 0 && !said.Own {
		stop = "end_turn"
	}
	return rawjson.AppendQuote(nil, stop)
}

func (s *strainer) Whole(body []byte) {
	r := rawjson.ValueOf(body)
	for element := range rawjson.Elements(split.Member(r, "content").Raw) {
		s.add(element.Raw)
	}
	s.stop = split.Member(r, "stop_reason").Text()
	s.Meter(split.Member(r, "usage"))
}

func (s *strainer) Rest(body []byte) []byte {
	if !s.Differs() || s.stop == "" {
		return body
	}
	body = split.WithMember(body, "content", split.List(s.Seen()))
	body = split.WithMember(body, "stop_reason", s.ending())
	if total := s.Total(); total != nil {
		body = split.WithMember(body, "usage", total)
	}
	return body
}

func (s *strainer) Event(data []byte) assemble.Passing {
	e := rawjson.ValueOf(data)
	index := split.Integer(split.Member(e, "index"))
	switch split.Member(e, "type").Text() {
	case "message_start":
		s.Meter(split.Member(e, "message", "usage"))
		if s.Answers > 0 {
			return assemble.Passing{}
		}
	case "content_block_start":
		block := split.Member(e, "content_block")
		s.block, s.input = assemble.Decode(block.Raw), nil
		if s.conceals(block) {
			return assemble.Passing{}
		}
		s.Begin(index)
		data = s.Numbered(data, "index", index)
	case "content_block_delta":
		s.more(split.Member(e, "delta"))
		data = s.Numbered(data, "index", index)
	case "content_block_stop":
		s.endBlock()
		data = s.Numbered(data, "index", index)
	case "message_delta":
		return s.end(e)
	}
	return assemble.Passing{Text: data}
}

// more adds what a delta brings to the block that is being read.
func (s *strainer) more(delta rawjson.Value) {
	piece := assemble.Decode(delta.Raw)
	if s.block == nil || piece == nil {
		return
	}
	if partial, is := piece["partial_json"].(string); is {
		s.input = append(s.input, partial...)
		return
	}
	if citation := piece["citation"]; citation != nil {
		piece = assemble.Piece{"citations": []any{citation}}
	}
	delete(piece, "type")
	assemble.Add(s.block, piece)
}

func (s *strainer) endBlock() {
	if s.block == nil {
		return
	}
	raw := assemble.Encode(s.block)
	if len(s.input) > 0 && rawjson.Valid(s.input, 0) == nil {
		raw = split.WithMember(raw, "input", s.input)
	}
	s.add(raw)
	s.block = nil
}

// end reads how an answer ends. Where it calls hidden tools alone its end is held back.
func (s *strainer) end(e rawjson.Value) assemble.Passing {
	data, delta := e.Raw, split.Member(e, "delta")
	s.stop = cmp.Or(split.Member(delta, "stop_reason").Text(), s.stop)
	for key, v := range rawjson.Members(split.Member(e, "usage").Raw) {
		s.Usage = split.WithMember(s.Usage, string(key.Raw), v.Raw)
	}
	if total := s.Total(); len(s.Used) > 0 && total != nil {
		data = split.WithMember(data, "usage", total)
	}
	if !s.Said().Alone() {
		return assemble.Passing{Text: data}
	}
	return assemble.Passing{End: split.WithMember(data, "delta", split.WithMember(delta.Raw, "stop_reason", s.ending()))}
}
