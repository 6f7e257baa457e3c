package messages

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ dialect.Hider = (*Dialect)(nil)

// Hides reports whether the client sends tools.
func (d *Dialect) Hides(r *dialect.Request) bool {
	return split.HasElements(split.Member(rawjson.ValueOf(r.Outside()), "tools"))
}

// Offer adds tools to a request's own.
func (d *Dialect) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	outside := r.Outside()
	list := split.Member(rawjson.ValueOf(outside), "tools")
	var text []byte
	for _, t := range tools {
		text = rawjson.AppendQuote(append(text, `,{"name":`...), t.Name)
		text = rawjson.AppendQuote(append(text, `,"description":`...), t.Description)
		text = append(append(append(text, `,"input_schema":`...), t.Parameters...), '}')
	}
	return r.Splice(split.EndOf(outside, list)-1, text)
}

// Result writes the result of a call.
func (d *Dialect) Result(call session.Call, text string) []byte {
	out := rawjson.AppendQuote([]byte(`{"type":"tool_result","tool_use_id":`), call.ID)
	return append(rawjson.AppendQuote(append(out, `,"content":`...), text), '}')
}

// Strain begins to take calls of hidden tools out of answers.
func (d *Dialect) Strain(streamed bool, hidden func(tool string) bool) dialect.Strainer {
	s := &strainer{hidden: hidden}
	if !streamed {
		return &wholeStrainer{strainer: s}
	}
	t := &streamStrainer{strainer: s, numbers: map[int]int{}}
	t.lines = split.Lines{Take: t.take, Pass: t.give}
	return t
}

// strainer is what is known of the answers so far.
type strainer struct {
	hidden func(tool string) bool
	shown  [][]byte // blocks that the client has got of the answers before this one
	used   []byte   // what they have used

	blocks []said // of this answer
	usage  []byte
	stop   string
}

// said is a block of an answer.
type said struct {
	raw  []byte
	call *session.Call // nil: it is none
	own  bool          // a call that the client has to answer
}

func (s *strainer) next() {
	s.shown, s.used = append(s.shown, s.seen()...), split.Sum(s.used, s.usage)
	s.blocks, s.usage, s.stop = nil, nil, ""
}

// seen are the blocks of this answer that the client gets.
func (s *strainer) seen() (all [][]byte) {
	for i := range s.blocks {
		if s.blocks[i].call == nil || s.blocks[i].own {
			all = append(all, s.blocks[i].raw)
		}
	}
	return all
}

// add takes a block that has come, whole.
func (s *strainer) add(raw []byte) {
	p := pieceOf(rawjson.ValueOf(raw))
	b := said{raw: bytes.Clone(raw)}
	if p.kind.Is("tool_use") {
		b.call = &session.Call{ID: p.id.Text(), Name: p.name.Text(), Arguments: split.FirstText(string(p.input.Raw), "{}")}
		b.own = !s.hidden(b.call.Name)
	}
	s.blocks = append(s.blocks, b)
}

// counts are how many calls are hidden, and how many are the client's.
func (s *strainer) counts() (hidden, own int) {
	for i := range s.blocks {
		switch b := &s.blocks[i]; {
		case b.own:
			own++
		case b.call != nil:
			hidden++
		}
	}
	return hidden, own
}

// told is what the model said, as it goes back to upstream.
func (s *strainer) told() (out dialect.Said) {
	out.Whole = s.stop == "tool_use" || s.stop == "end_turn" || s.stop == "stop_sequence"
	var all [][]byte
	for i := range s.blocks {
		b := &s.blocks[i]
		all = append(all, b.raw)
		if out.Own = out.Own || b.own; b.call != nil && !b.own {
			out.Calls = append(out.Calls, *b.call)
		}
	}
	if len(all) > 0 {
		out.Message = spoken(all)
	}
	return out
}

func spoken(blocks [][]byte) []byte {
	return slices.Concat([]byte(`{"role":"assistant","content":`), inList(blocks), []byte{'}'})
}

// Echo is the message as the client has it.
func (s *strainer) Echo() []byte {
	if all := append(slices.Clip(s.shown), s.seen()...); len(all) > 0 {
		return spoken(all)
	}
	return nil
}

// ending is how the answer ends for a client that has got no call.
func (s *strainer) ending() string {
	if hidden, own := s.counts(); s.stop == "tool_use" && hidden > 0 && own == 0 {
		return "end_turn"
	}
	return s.stop
}

// wholeStrainer reads answers that are not streamed.
type wholeStrainer struct {
	*strainer
	body []byte
}

func (s *wholeStrainer) Write(p []byte) []byte {
	s.body = append(s.body, p...)
	return nil
}

func (s *wholeStrainer) Close() dialect.Said {
	if rawjson.Valid(s.body, 0) != nil {
		return dialect.Said{}
	}
	r := replyOf(rawjson.ValueOf(s.body))
	for element := range rawjson.Elements(r.content.Raw) {
		s.add(element.Raw)
	}
	s.stop = r.stop.Text()
	if r.usage.Kind == rawjson.Object {
		s.usage = bytes.Clone(r.usage.Raw)
	}
	return s.told()
}

func (s *wholeStrainer) Next() {
	s.next()
	s.body = nil
}

func (s *wholeStrainer) Finish() []byte {
	hidden, _ := s.counts()
	if hidden == 0 && len(s.shown) == 0 && len(s.used) == 0 || s.stop == "" {
		return s.body
	}
	body := split.WithMember(s.body, "content", inList(append(slices.Clip(s.shown), s.seen()...)))
	body = split.WithMember(body, "stop_reason", rawjson.AppendQuote(nil, s.ending()))
	if len(s.usage) > 0 {
		body = split.WithMember(body, "usage", split.Sum(s.used, s.usage))
	}
	return body
}

// streamStrainer reads answers as they come.
type streamStrainer struct {
	*strainer
	lines split.Lines
	out   []byte
	held  []byte // the end of an answer that may not be the last one
	holds bool

	answers int         // before this one
	numbers map[int]int // of blocks, as the client counts them; those of hidden calls have none
	shownTo int         // blocks that the client has got
	block   assemble.Piece
	input   []byte // of the call that is being read
}

func (s *streamStrainer) Write(p []byte) []byte {
	s.out = nil
	s.lines.Write(p)
	return s.out
}

func (s *streamStrainer) Close() dialect.Said {
	s.out = nil
	s.lines.Close()
	return s.told()
}

func (s *streamStrainer) Next() {
	s.next()
	s.answers++
	s.held, s.holds, s.block = nil, false, nil
	clear(s.numbers)
}

func (s *streamStrainer) Finish() []byte { return append(s.out, s.held...) }

// give hands text on, or holds it back.
func (s *streamStrainer) give(text []byte) {
	if s.holds {
		s.held = append(s.held, text...)
	} else {
		s.out = append(s.out, text...)
	}
}

// take reads an event, and hands on what the client gets of it.
func (s *streamStrainer) take(data, lines []byte) bool {
	if rawjson.Valid(data, 0) != nil {
		s.give(lines)
		return true
	}
	text := s.event(replyOf(rawjson.ValueOf(data)), data)
	switch {
	case text == nil:
		return false
	case bytes.Equal(text, data):
		s.give(lines)
	default:
		name := lines[:bytes.LastIndexByte(lines[:len(lines)-1], '\n')+1] // the last line is that of the data
		s.give(slices.Concat(name, []byte("data: "), text, []byte{'\n'}))
	}
	return true
}

// event gives what the client gets of an event, nil for nothing.
func (s *streamStrainer) event(e reply, data []byte) []byte {
	index := split.Integer(e.index)
	switch e.kind.Text() {
	case "message_start":
		if usage := replyOf(e.message).usage; usage.Kind == rawjson.Object {
			s.usage = bytes.Clone(usage.Raw)
		}
		if s.answers > 0 {
			return nil
		}
	case "content_block_start":
		s.block, s.input = assemble.Decode(e.block.Raw), nil
		if p := pieceOf(e.block); p.kind.Is("tool_use") && s.hidden(p.name.Text()) {
			return nil
		}
		s.numbers[index] = s.shownTo
		s.shownTo++
		return s.numbered(data, index)
	case "content_block_delta":
		s.more(e.delta)
		return s.numbered(data, index)
	case "content_block_stop":
		s.endBlock()
		return s.numbered(data, index)
	case "message_delta":
		return s.end(e, data)
	}
	return data
}

// numbered gives an event of a block with the number that the client knows the block by, nil if it does not know it.
func (s *streamStrainer) numbered(data []byte, index int) []byte {
	number, known := s.numbers[index]
	switch {
	case !known:
		return nil
	case number == index:
		return data
	}
	return split.WithMember(data, "index", assemble.Encode(number))
}

// more adds what a delta brings to the block that is being read.
func (s *streamStrainer) more(delta rawjson.Value) {
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

func (s *streamStrainer) endBlock() {
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
func (s *streamStrainer) end(e reply, data []byte) []byte {
	stop := pieceOf(e.delta).stop
	s.stop = split.FirstText(stop.Text(), s.stop)
	for key, v := range rawjson.Members(e.usage.Raw) {
		s.usage = split.WithMember(s.usage, string(key.Raw), v.Raw)
	}
	out := data
	if len(s.used) > 0 && len(s.usage) > 0 {
		out = split.WithMember(out, "usage", split.Sum(s.used, s.usage))
	}
	if s.holds = s.told().Alone(); s.holds {
		out = split.WithMember(out, "delta", split.WithMember(e.delta.Raw, "stop_reason", rawjson.AppendQuote(nil, s.ending())))
	}
	return out
}
