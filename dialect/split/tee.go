package split

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// What a tee keeps of an answer, in bytes: its text, and again the arguments of its calls; one event of a stream, of which the last may
// have the whole answer; an answer that is not streamed. And so many calls.
const (
	MostText   = 256 << 10
	MostAnswer = 4 << 20
	MostCalls  = 256
)

// Answers is how a dialect reads an answer.
type Answers interface {
	// Whole takes an answer that is not streamed.
	Whole(body rawjson.Value)
	// Event takes an event of a stream, and reports whether it ends the answer.
	Event(event rawjson.Value) (ends bool)
	// Answer is what was learnt so far.
	Answer() dialect.Answer
}

// Done ends the streams of many servers.
const Done = "[DONE]"

// Sound reports whether a text is a JSON object.
func Sound(text []byte) bool {
	return rawjson.Valid(text, 0) == nil && rawjson.ValueOf(text).Kind == rawjson.Object
}

// Tee begins to read an answer. A stream has ended once the event has passed that ends it, or the mark, whatever else was seen. Else it was
// cut off, unless its server never sends one. Without a mark there is none.
func Tee(streamed bool, mark string, a Answers) dialect.Tee {
	if !streamed {
		return &wholeTee{Answers: a}
	}
	t := &streamTee{Answers: a, mark: mark}
	t.events = Events{Take: t.take, Most: MostAnswer}
	return t
}

type streamTee struct {
	Answers
	events Events
	mark   string
	ended  bool
}

func (t *streamTee) Write(p []byte) { t.events.Write(p) }

func (t *streamTee) Ended() bool { return t.ended || t.marks(t.events.Pending()) }

func (t *streamTee) marks(data []byte) bool { return t.mark != "" && string(data) == t.mark }

func (t *streamTee) take(data []byte) bool {
	switch {
	case t.marks(data):
		t.ended = true
	case !Sound(data):
		return false
	case t.Event(rawjson.ValueOf(data)):
		t.ended = true
	}
	return true
}

// wholeTee reads an answer that is not streamed. It ends once the outermost bracket has closed, even if the body is too long to be read;
// a body that is no object or array never ends.
type wholeTee struct {
	Answers
	body []byte
	end  end
	done bool // it was read, or is too long for that
}

func (t *wholeTee) Write(p []byte) {
	p = p[:t.end.write(p)]
	if t.done = t.done || len(t.body)+len(p) > MostAnswer; t.done {
		t.body = nil
		return
	}
	t.body = append(t.body, p...)
}

func (t *wholeTee) Ended() bool { return t.end.closed }

func (t *wholeTee) Answer() dialect.Answer {
	if !t.done && t.end.closed {
		if t.done = true; Sound(t.body) {
			t.Whole(rawjson.ValueOf(t.body))
		}
		t.body = nil
	}
	return t.Answers.Answer()
}

// end follows a JSON object or array to the bracket that closes it, and checks nothing else.
type end struct {
	closed bool

	depth    int
	inString bool
	escaped  bool
}

// write takes the next bytes, and tells how many of them stand before the end.
func (e *end) write(p []byte) int {
	for i, c := range p {
		switch {
		case e.closed:
			return i
		case e.escaped:
			e.escaped = false
		case e.inString:
			e.escaped, e.inString = c == '\\', c != '"'
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			e.depth--
			e.closed = e.depth <= 0
		}
	}
	return len(p)
}

// Gathered is what an answer says. A text, or the arguments of a call, is given up where there is too much of it.
type Gathered struct {
	Learnt      dialect.Answer // all but its text and its calls
	Calls       []Called
	NoArguments string // what calls without arguments have

	text      []byte
	lost      bool // the text is too long
	arguments int  // bytes, of all calls
}

// Called is a call that comes in pieces.
type Called struct {
	Index     int // by which its pieces name it
	ID, Name  string
	arguments []byte
	lost      bool
}

// Say adds text.
func (g *Gathered) Say(text string) {
	if g.lost = g.lost || len(g.text)+len(text) > MostText; g.lost {
		text, g.text = "", nil
	}
	g.text = append(g.text, text...)
}

// Call begins a call, nil if there are too many.
func (g *Gathered) Call(index int, id, name string) *Called {
	if len(g.Calls) == MostCalls {
		return nil
	}
	g.Calls = append(g.Calls, Called{Index: index, ID: Cut(id), Name: Cut(name)})
	return &g.Calls[len(g.Calls)-1]
}

// Argue adds to the arguments of a call.
func (g *Gathered) Argue(c *Called, text string) {
	if c.lost = c.lost || g.arguments+len(text) > MostText; c.lost {
		c.arguments = nil
		return
	}
	g.arguments += len(text)
	c.arguments = append(c.arguments, text...)
}

// Meter takes how many tokens an answer cost, of which the cached ones are part of the input.
func (g *Gathered) Meter(input, cached, output int) {
	if cached > input { // some gateways leave the cached part out, as Anthropic does
		input += cached
	}
	g.Learnt.Usage = &session.Usage{Input: input, Cached: cached, Output: output}
}

// Stop notes why an answer ended, if that is known.
func (g *Gathered) Stop(reason string) { g.Learnt.Finish = cmp.Or(Cut(reason), g.Learnt.Finish) }

// Answer is what was learnt so far.
func (g *Gathered) Answer() dialect.Answer {
	a := g.Learnt
	a.Text = string(g.text)
	if a.Usage != nil {
		usage := *a.Usage
		a.Usage = &usage
	}
	for i := range g.Calls {
		c := &g.Calls[i]
		call := session.Call{ID: c.ID, Name: c.Name, Arguments: string(c.arguments)}
		if call.Arguments == "" && !c.lost {
			call.Arguments = g.NoArguments
		}
		a.Calls = append(a.Calls, call)
	}
	return a
}
