package responses

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Rewrite gives a message of a user or a result with another text. Everything else of it stays as the client wrote it. Results that
// are more than text, such as a screenshot, cannot be rewritten.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	it, err := single(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	quoted := rawjson.AppendQuote(nil, text)
	switch class := it.class(); {
	case class == typed:
		return split.WithMember(it.Raw, "content", quoted), nil
	case class != result:
		return nil, errors.New("rewrite message: it is neither a user's nor a result")
	case it.is("shell_call_output"):
		chunk := slices.Concat([]byte(`[{"stdout":`), quoted, []byte(`,"stderr":"","outcome":{"type":"exit","exit_code":0}}]`))
		return split.WithMember(it.Raw, "output", chunk), nil
	case it.Get("output").Kind == rawjson.Object || it.Get("output").Kind == 0:
		return nil, errors.New("rewrite message: its output is no text")
	}
	return split.WithMember(it.Raw, "output", quoted), nil
}

// single is the only item of a raw text.
func single(raw []byte) (*item, error) {
	items, err := itemsOf(raw)
	if err == nil && len(items) != 1 {
		err = errors.New("it is more than one item")
	}
	if err != nil {
		return nil, err
	}
	return items[0], nil
}

// StripReasoning gives what a model said without the reasoning that is bound to what stood before it, and without the ids by which
// upstream would look for such reasoning. What has reasoning of another binding, which is bound to the items behind it, stays as it is.
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) {
	items, err := itemsOf(raw)
	if err != nil {
		return nil, fmt.Errorf("strip reasoning: %w", err)
	}
	if items[0].class() != said || !leans(items) && !slices.ContainsFunc(items, bound) {
		return raw, nil
	}
	var left [][]byte
	for i := range items {
		if !items[i].bound() {
			left = append(left, items[i].anonymous())
		}
	}
	if len(left) == 0 {
		return d.Reply("(no text)"), nil
	}
	return split.Join(left), nil
}

// anonymous is an item without its id. A reference is nothing else.
func (it *item) anonymous() []byte {
	if it.Get("id").Kind == 0 || it.is("item_reference") || it.is("mcp_approval_request") {
		return it.Raw
	}
	return split.WithoutMember(it.Raw, "id")
}

// Merge gives the first of two messages of a user with the content of the second behind its own.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	a, err := single(first)
	if err != nil {
		return nil, fmt.Errorf("merge message: %w", err)
	}
	b, err := single(second)
	if err != nil {
		return nil, fmt.Errorf("merge message: %w", err)
	}
	if !a.isMessage() || !b.isMessage() || a.Get("content").Kind == 0 {
		return nil, fmt.Errorf("merge message: %w", errForm)
	}
	parts := append(split.Parts(a.Get("content"), "input_text"), split.Parts(b.Get("content"), "input_text")...)
	return split.WithMember(a.Raw, "content", split.List(parts)), nil
}

// Join gives a request's body with other messages in the place of its own. The instructions stay as the client wrote them.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte {
	items := slices.DeleteFunc(slices.Clone(messages), isInstructions)
	if text := r.Body[r.Inside.From:r.Inside.To]; isInstructions(text) && r.Body[r.Inside.From-1] != '[' { // the history is a text
		if len(items) == 1 && bytes.Equal(items[0], lone(text)) {
			return [][]byte{r.Body}
		}
		bracketed := slices.Concat(r.Body[:r.Inside.From], []byte("[]"), r.Body[r.Inside.To:])
		at := r.Inside.From + 1
		r = &dialect.Request{Body: bracketed, Inside: dialect.Span{From: at, To: at}}
	}
	return r.Join(items)
}

// lone is the message that a history stands for which is a text.
func lone(text []byte) []byte {
	return slices.Concat([]byte(`{"type":"message","role":"user","content":`), text, []byte{'}'})
}

// Compose makes a body that has these messages, which may be nothing else than what Split gave.
func (d *Dialect) Compose(messages [][]byte) []byte {
	head := []byte(`{"model":"",`)
	if len(messages) > 0 && isInstructions(messages[0]) {
		head = slices.Concat(head, []byte(`"instructions":`), messages[0], []byte{','})
		messages = messages[1:]
	}
	return slices.Concat(head, []byte(`"input":[`), split.Join(messages), []byte("]}"))
}
