package dialect_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// talk is the dialect of a small protocol with bodies like {"talk":["U: the user's words","M: the model's"]}. It implements
// only the methods that this example needs.
type talk struct{ dialect.Dialect }

func (talk) Name() string { return "talk" }

// Split slices the body without copying. A real dialect scans it once, and rejects what two parsers could read differently.
func (t talk) Split(_ string, body []byte) (*dialect.Request, error) {
	var outer struct{ Talk []json.RawMessage }
	if err := json.Unmarshal(body, &outer); err != nil {
		return nil, &dialect.Error{Code: dialect.CodeInvalidJSON, Message: "The body is not JSON."}
	}
	r := &dialect.Request{Body: body, ListSpan: dialect.Span{From: bytes.IndexByte(body, '[') + 1, To: bytes.LastIndexByte(body, ']')}}
	for at, i := r.ListSpan.From, 0; i < len(outer.Talk); i++ {
		from := at + bytes.Index(body[at:], outer.Talk[i])
		at = from + len(outer.Talk[i])
		m := session.Message{Raw: body[from:at], Kind: session.User, Digest: sha256.Sum256(outer.Talk[i])}
		if bytes.HasPrefix(m.Raw, []byte(`"M`)) {
			m.Kind = session.Agent
		}
		r.Messages = append(r.Messages, m)
	}
	return r, nil
}

func (talk) Read(raw []byte) (c session.Content, err error) {
	var text string
	err = json.Unmarshal(raw, &text)
	if c.Role = "user"; len(text) > 0 && text[0] == 'M' {
		c.Role = "assistant"
	}
	c.Text = text[min(3, len(text)):]
	return c, err
}

func (talk) Join(r *dialect.Request, messages [][]byte) [][]byte { return r.Join(messages) }

func (talk) Note(text string) []byte { return fmt.Appendf(nil, "%q", "U: "+text) }

// A dialect splits a body into messages, reads and writes single messages, and reads answers. The engine chooses the messages
// to forward, and Join puts them in place of the client's.
func ExampleDialect() {
	var d dialect.Dialect = talk{}
	r, err := d.Split("", []byte(`{"talk": ["U: hello", "M: hi", "U: and now?"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range r.Messages {
		c, _ := d.Read(m.Raw)
		fmt.Printf("%s: %s\n", c.Role, c.Text)
	}
	view := [][]byte{d.Note("They said hello."), r.Messages[2].Raw}
	fmt.Printf("%s\n", bytes.Join(d.Join(r, view), nil))
	// Output:
	// user: hello
	// assistant: hi
	// user: and now?
	// {"talk": ["U: They said hello.","U: and now?"]}
}
