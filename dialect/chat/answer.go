package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxCalls is how many calls of one answer are kept. Their ids and names are cut to split.MaxField bytes.
const maxCalls = 256

// answer gathers what chunks, or a whole body, tell.
type answer struct {
	most   int // bytes of text, and of arguments in all
	text   bounds
	calls  []fragments
	used   int // bytes of arguments
	finish string
	usage  *session.Usage

	chunk  chunk // these are being read; kept here so that a chunk of a stream costs no allocation
	choice choice
	delta  message
	called callPiece
}

// bounds is text that is given up when it grows too long.
type bounds struct {
	text []byte
	lost bool
}

// fragments is a call that comes in pieces.
type fragments struct {
	index     int
	id, name  string
	arguments bounds
}

// chunk is what is known of a chunk or a body.
type chunk struct{ choices, usage rawjson.Value }

func (c *chunk) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "choices":
		return &c.choices
	case "usage":
		return &c.usage
	}
	return nil
}

type choice struct{ index, delta, message, finish, usage rawjson.Value }

func (c *choice) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "index":
		return &c.index
	case "delta":
		return &c.delta
	case "message":
		return &c.message
	case "finish_reason":
		return &c.finish
	case "usage":
		return &c.usage
	}
	return nil
}

// read takes a chunk or a whole body. It reports whether it is a JSON object.
func (a *answer) read(data []byte) bool {
	if !sound(data) {
		return false
	}
	a.chunk = chunk{}
	split.Fill(&a.chunk, data)
	for element := range rawjson.Elements(a.chunk.choices.Raw) {
		a.choice = choice{}
		split.Fill(&a.choice, element.Raw)
		a.meter(a.choice.usage)
		if split.Integer(a.choice.index) == 0 {
			a.choose(&a.choice)
		}
	}
	a.meter(a.chunk.usage)
	return true
}

func (a *answer) choose(c *choice) {
	if text := c.finish.Text(); text != "" {
		a.finish = split.Cut(text)
	}
	a.hear(c.delta)
	a.hear(c.message)
}

// hear takes a delta, or a whole message.
func (a *answer) hear(v rawjson.Value) {
	if v.Kind != rawjson.Object {
		return
	}
	m := &a.delta
	m.reset()
	split.Fill(m, v.Raw)
	a.speak(m.content)
	position := 0
	for element := range rawjson.Elements(m.toolCalls.Raw) {
		a.call(element, position)
		position++
	}
	if m.functionCall.Kind == rawjson.Object {
		split.Fill(&m.function, m.functionCall.Raw)
		a.piece(&piece{index: -1, id: split.Cut(m.function.name.Text()), function: m.function})
	}
}

// speak adds content: a string, or parts of which the text counts.
func (a *answer) speak(content rawjson.Value) {
	if content.Kind == rawjson.String {
		a.text.add(content, a.most-len(a.text.text))
		return
	}
	for element := range rawjson.Elements(content.Raw) {
		var p contentPart
		split.Fill(&p, element.Raw)
		if p.kind.Is("text") {
			a.text.add(p.text, a.most-len(a.text.text))
		}
	}
}

// piece is what one chunk tells of a call.
type piece struct {
	index    int
	id       string
	function function
}

// callPiece is an element of tool_calls in a chunk.
type callPiece struct {
	call
	index rawjson.Value
}

func (c *callPiece) Slot(name []byte) *rawjson.Value {
	if string(name) == "index" {
		return &c.index
	}
	return c.call.Slot(name)
}

// call reads an element of tool_calls. Where it has no index, its position stands for it.
func (a *answer) call(element rawjson.Value, position int) {
	c := &a.called
	*c = callPiece{}
	split.Fill(c, element.Raw)
	split.Fill(&c.called, c.function.Raw)
	p := piece{index: position, id: split.Cut(c.id.Text()), function: c.called}
	if c.index.Kind == rawjson.Number {
		p.index = split.Integer(c.index)
	}
	if c.custom.Kind == rawjson.Object {
		split.Fill(&c.input, c.custom.Raw)
		p.function = function{name: c.input.name, arguments: c.input.input}
	}
	a.piece(&p)
}

// piece adds to the newest call of its index. A piece with another id and a name begins a new one: some servers give
// every call the index 0.
func (a *answer) piece(p *piece) {
	called := split.Cut(p.function.name.Text())
	at := -1
	for i := range slices.Backward(a.calls) {
		if a.calls[i].index == p.index {
			at = i
			break
		}
	}
	if at < 0 || called != "" && a.calls[at].name != "" && p.id != "" && p.id != a.calls[at].id {
		if len(a.calls) == maxCalls {
			return
		}
		at = len(a.calls)
		a.calls = append(a.calls, fragments{index: p.index})
	}
	c := &a.calls[at]
	c.id, c.name = split.FirstText(c.id, p.id), split.FirstText(c.name, called)
	a.used += c.arguments.add(p.function.arguments, a.most-a.used)
}

// add appends a string that may have at most room bytes, and gives how much it took. Else all of it is given up.
func (b *bounds) add(v rawjson.Value, room int) int {
	if v.Kind != rawjson.String || b.lost {
		return 0
	}
	before := len(b.text)
	b.text, _ = rawjson.AppendUnquote(b.text, v.Inner())
	took := len(b.text) - before
	if took > room {
		b.text, b.lost = nil, true
		return 0
	}
	return took
}

// give is the answer so far.
func (a *answer) give() dialect.Answer {
	out := dialect.Answer{Text: string(a.text.text), Finish: a.finish}
	if a.usage != nil {
		usage := *a.usage
		out.Usage = &usage
	}
	for i := range a.calls {
		c := &a.calls[i]
		out.Calls = append(out.Calls, session.Call{ID: c.id, Name: c.name, Arguments: string(c.arguments.text)})
	}
	return out
}
