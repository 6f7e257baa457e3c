package replay

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// Protocol is the protocol in which an agent called its model.
type Protocol string

// The protocols.
const (
	ProtocolChat      Protocol = "" // Chat Completions
	ProtocolMessages  Protocol = "messages"
	ProtocolResponses Protocol = "responses"
)

// wire writes requests and answers of one protocol.
type wire interface {
	path() string
	dialect() dialect.Dialect
	// isAnswer reports whether a message of a run was written by the model.
	isAnswer(message []byte) bool
	// body returns a request for the messages.
	body(run *Run, model string, messages []json.RawMessage) []byte
	// furnish returns the run with a text in place of what it lacks of system prompt and tools.
	furnish(run Run, text string) Run
	// response returns the body of a response with an answer.
	response(model string, answer []byte, u model.Usage) []byte
	// encode encodes an answer of the stand-in.
	encode(r reply) []byte
	// demands returns the function that the model must call, if any, and the schema that its text must have, if any.
	demands(body []byte) demands
	// automatic reports whether a provider caches every prompt. Otherwise it caches what a request marks.
	automatic() bool
	// caches reports whether a provider writes a prefix to its cache that ends with this message.
	caches(message []byte) bool
	// plain returns a message without what changes from request to request although its content does not.
	plain(message []byte) []byte
}

var wires = map[Protocol]wire{ProtocolChat: chatWire{}, ProtocolMessages: messagesWire{}, ProtocolResponses: responsesWire{}}

// reply is an answer of the stand-in: a text, or a call of a function.
type reply struct{ text, function, arguments string }

// demands is what a call demands of the model's answer.
type demands struct {
	function   string // must be called
	parameters schema
	format     schema // of the text
	limit      int    // of the answer, in tokens; 0: none
}

// member is a member of a request.
type member struct {
	name  string
	value []byte // empty: it is left out
}

// object writes a JSON object.
func object(members ...member) []byte {
	b := bytes.NewBufferString("{")
	for _, m := range members {
		if len(m.value) == 0 {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + m.name + `":`)
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// list writes a JSON list.
func list(elements []json.RawMessage) []byte {
	size := 2
	for _, e := range elements {
		size += len(e) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

func quote(text string) []byte { return assemble.Encode(text) }

// role returns the role of a message, empty if it has none.
func role(message []byte) string {
	var m struct{ Role string }
	_ = json.Unmarshal(message, &m)
	return m.Role
}

// functions are the tools of a request: a function is found by its name.
type functions []struct {
	Name        string
	Parameters  schema
	InputSchema schema `json:"input_schema"`
	Function    struct {
		Name       string
		Parameters schema
	}
}

// chosen returns the function that a tool_choice names, and its parameters. The name is empty if there is none.
func (f functions) chosen(choice json.RawMessage) (name string, parameters schema) {
	name = nameIn(choice)
	for _, t := range f {
		switch {
		case name == "":
		case t.Function.Name == name:
			return name, t.Function.Parameters
		case t.Name == name && t.InputSchema.Type != "":
			return name, t.InputSchema
		case t.Name == name:
			return name, t.Parameters
		}
	}
	return "", schema{}
}

// nameIn returns the function that a tool_choice names, if any.
func nameIn(choice json.RawMessage) string {
	var c struct {
		Name     string
		Function struct{ Name string }
	}
	if json.Unmarshal(choice, &c) != nil { // "auto", "none"
		return ""
	}
	return cmp.Or(c.Function.Name, c.Name)
}
