package split

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Limits of what a tee keeps of an answer.
const (
	MaxText   = 256 << 10 // bytes of the text, and of the arguments of all calls together
	MaxAnswer = 4 << 20   // bytes of an answer that is not streamed, and of one event, since the last one may repeat the answer
	MaxCalls  = 256
)

// AnswerReader reads the answers of a dialect.
type AnswerReader interface {
	// Whole reads an answer that is not streamed.
	Whole(body rawjson.Value)
	// Event reads an event of a stream, and reports whether it ends the answer.
	Event(event rawjson.Value) (ends bool)
	// Failed reports whether the answer reports an error.
	Failed() bool
	// Answer returns what has been read so far.
	Answer() dialect.Answer
}

// Done is the data that marks the end of a stream in the APIs of OpenAI.
const Done = "[DONE]"

// IsObject reports whether text is a valid JSON object.
func IsObject(text []byte) bool {
	return rawjson.Valid(text, 0) == nil && rawjson.ValueOf(text).Kind == rawjson.Object
}

// NewTee returns a tee that passes an answer to a. A stream ends with an event that ends the answer, or with data equal to
// mark, unless mark is empty. A stream without either was cut off, or comes from a server that never sends the mark.
func NewTee(streamed bool, mark string, a AnswerReader) dialect.Tee {
	if !streamed {
		return &wholeTee{AnswerReader: a}
	}
	t := &streamTee{AnswerReader: a, mark: mark}
	t.events.Take = t.take
	return t
}

type streamTee struct {
	AnswerReader
	events Events
	mark   string
	ended  bool
}

func (t *streamTee) Write(p []byte) { t.events.Write(p) }

// Ended also looks at the last line, since some servers do not end it.
func (t *streamTee) Ended() bool { return t.ended || t.isMark(t.events.Pending()) }

func (t *streamTee) isMark(data []byte) bool { return t.mark != "" && string(data) == t.mark }

func (t *streamTee) take(data []byte) bool {
	switch {
	case t.ended || t.isMark(bytes.TrimSpace(data)):
		t.ended = true
	case !IsObject(data):
		return false
	case t.Event(rawjson.ValueOf(data)):
		t.ended = true
	}
	return true
}

func (t *streamTee) Answer() dialect.Answer {
	a := t.AnswerReader.Answer()
	a.Garbled = t.events.Unused
	return a
}

// wholeTee reads an answer that is not streamed as events: an object, or a list with the pieces of one, each of which is read once it is
// complete. It ends at the bracket that closes the body, even if the body, or a piece, is too long to be kept. A body that is neither an
// object nor a list never ends.
type wholeTee struct {
	AnswerReader
	body []byte // so far: of a list, the current piece
	long bool   // it exceeds MaxAnswer
	read bool   // the body was read

	list     bool
	closed   bool // the last bracket has closed the body
	depth    int
	inString bool
	escaped  bool
}

func (t *wholeTee) Write(p []byte) {
	for len(p) > 0 && !t.closed {
		n := t.scan(p)
		if t.long = t.long || len(t.body)+n > MaxAnswer; t.long {
			t.body = nil
		} else {
			t.body = append(t.body, p[:n]...)
		}
		if t.list && (n < len(p) || t.depth <= 1) {
			t.readPiece()
		}
		p = p[n:]
	}
}

func (t *wholeTee) Ended() bool { return t.closed }

func (t *wholeTee) Answer() dialect.Answer {
	if !t.read && t.closed && IsObject(t.body) {
		t.Whole(rawjson.ValueOf(t.body))
	}
	t.read = t.closed
	return t.AnswerReader.Answer()
}

// readPiece reads a piece of a list, if one has ended.
func (t *wholeTee) readPiece() {
	piece := bytes.TrimLeft(t.body, "[, \t\r\n")
	if len(piece) == 0 && !t.long {
		return
	}
	if !t.long && IsObject(piece) {
		t.Event(rawjson.ValueOf(piece))
	}
	t.body, t.long = t.body[:0], false
}

// scan looks for the bracket that closes the body, or a piece of a list, and returns how many of the next bytes it ends. It does not validate
// them.
func (t *wholeTee) scan(p []byte) int {
	for i, c := range p {
		switch {
		case t.escaped:
			t.escaped = false
		case t.inString:
			t.escaped = c == '\\'
			t.inString = c != '"'
		case c == '"':
			t.inString = true
		case c == '{' || c == '[':
			t.list = t.list || t.depth == 0 && c == '['
			t.depth++
		case c == '}' || c == ']':
			t.depth--
			t.closed = t.depth <= 0
			if t.closed || t.list && t.depth == 1 {
				return i + 1
			}
		}
	}
	return len(p)
}

// Collector collects the parts of an answer. It drops a text, or the arguments of a call, that exceeds MaxText.
type Collector struct {
	Known       dialect.Answer // all of the answer but its text and calls
	Calls       []PartialCall
	NoArguments string // the arguments of a call for which none were sent

	text      []byte
	lost      bool // the text exceeded the limit
	arguments int  // bytes, of all calls
}

// PartialCall is a tool call that arrives in pieces.
type PartialCall struct {
	Index     int // by which its pieces refer to it
	ID, Name  string
	arguments []byte
	lost      bool // the arguments exceeded the limit
}

// AddText appends to the text.
func (c *Collector) AddText(text string) {
	c.Known.Wrote += len(text)
	if c.lost || len(c.text)+len(text) > MaxText {
		c.lost, c.Known.Lost = true, true
		c.text = nil
		return
	}
	c.text = append(c.text, text...)
}

// AddPart appends a part to the text, on a new line: the parts of an answer are joined as in a history.
func (c *Collector) AddPart(text string) {
	if len(c.text) > 0 {
		text = "\n" + text
	}
	c.AddText(text)
}

// AddRefusal appends to the refusal, of which only the beginning is kept.
func (c *Collector) AddRefusal(text string) {
	c.Known.Refusal = Truncate(c.Known.Refusal + text)
}

// BeginCall adds a call, unless there are MaxCalls of them, with the beginning of its arguments.
func (c *Collector) BeginCall(index int, id, name, arguments string) {
	if n := len(c.Calls); n < MaxCalls {
		c.Calls = append(c.Calls, PartialCall{Index: index, ID: Truncate(id), Name: Truncate(name)})
		c.AddArguments(&c.Calls[n], arguments)
	}
}

// AddArguments appends to the arguments of a call.
func (c *Collector) AddArguments(call *PartialCall, text string) {
	c.Known.Wrote += len(text)
	if call.lost || c.arguments+len(text) > MaxText {
		call.lost, c.Known.Lost = true, true
		call.arguments = nil
		return
	}
	c.arguments += len(text)
	call.arguments = append(call.arguments, text...)
}

// statuses are the HTTP statuses that codes and types of errors imply. All other errors are failures of the server.
// https://docs.claude.com/en/api/errors, https://platform.openai.com/docs/guides/error-codes
var statuses = map[string]int{
	"invalid_request_error": 400, "invalid_prompt": 400, "context_length_exceeded": 400, "content_filter": 400, "content_policy_violation": 400,
	"authentication_error": 401, "invalid_api_key": 401, "permission_error": 403, "not_found_error": 404, "model_not_found": 404,
	"request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
}

// Fail records an error that the answer reports. Each value may be the error's status, as a number or a text, or its code or type.
func (c *Collector) Fail(codes ...rawjson.Value) {
	c.Known.Failed = true
	for _, code := range codes {
		text := code.Text()
		if status, err := strconv.Atoi(cmp.Or(text, string(code.Raw))); err == nil && status >= 400 && status < 600 {
			c.Known.Status = cmp.Or(c.Known.Status, status)
		} else {
			c.Known.Code, c.Known.Status = cmp.Or(c.Known.Code, Truncate(text)), cmp.Or(c.Known.Status, statuses[text])
		}
	}
}

// AddCompaction adds a compaction by its content, unless that is empty or there are MaxCalls of them.
func (c *Collector) AddCompaction(content string) {
	if content != "" && len(c.Known.Compactions) < MaxCalls {
		c.Known.Compactions = append(c.Known.Compactions, CompactionID(content))
	}
}

// maxTokens is more than any model reads or writes in one request.
const maxTokens = 1 << 26

// SetUsage sets the token counts of an answer. Its input should include what was read from the cache and written to it; some gateways leave
// that out, as Anthropic does, so it is added if it exceeds input. A count that no model can have is cut, so that sums do not overflow.
func (c *Collector) SetUsage(u session.Usage) {
	for _, n := range []*int{&u.Input, &u.Cached, &u.Written, &u.WrittenLong, &u.Output} {
		*n = min(max(*n, 0), maxTokens)
	}
	if u.Cached+u.Written > u.Input {
		u.Input += u.Cached + u.Written
	}
	c.Known.Usage = &u
}

// SetFinish sets why an answer ended, unless reason is empty.
func (c *Collector) SetFinish(reason string) {
	c.Known.Finish = cmp.Or(Truncate(reason), c.Known.Finish)
}

// Failed reports whether an error was collected.
func (c *Collector) Failed() bool { return c.Known.Failed }

// Answer returns what has been collected so far.
func (c *Collector) Answer() dialect.Answer {
	a := c.Known
	a.Text = string(c.text)
	for _, partial := range c.Calls {
		call := session.Call{ID: partial.ID, Name: partial.Name, Arguments: string(partial.arguments)}
		if call.Arguments == "" && !partial.lost {
			call.Arguments = c.NoArguments
		}
		a.Calls = append(a.Calls, call)
	}
	return a
}
