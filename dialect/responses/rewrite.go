package responses

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Rewrite replaces the content of a user or system message, or the output of a result, with text. The rest stays as the client wrote
// it. Results that are not text, such as a screenshot, cannot be rewritten.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	it, err := single(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	quoted := rawjson.AppendQuote(nil, text)
	output := it.Get("output")
	switch class := it.class(); {
	case class == userMessage, class == systemMessage && it.isMessage():
		return split.WithMember(it.Raw, "content", quoted), nil
	case class != toolResult:
		return nil, errors.New("rewrite message: neither a message to the model nor a result")
	case it.is("shell_call_output"):
		chunk := slices.Concat([]byte(`[{"stdout":`), quoted, []byte(`,"stderr":"","outcome":{"type":"exit","exit_code":0}}]`))
		return split.WithMember(it.Raw, "output", chunk), nil
	case output.Kind == rawjson.Object || output.Kind == 0:
		return nil, errors.New("rewrite message: output is not text")
	}
	return split.WithMember(it.Raw, "output", quoted), nil
}

// single returns the only item of a raw text.
func single(raw []byte) (*item, error) {
	items, err := itemsOf(raw)
	if err == nil && len(items) != 1 {
		err = errors.New("message has more than one item")
	}
	if err != nil {
		return nil, err
	}
	return items[0], nil
}

// StripReasoning removes reasoning that is bound to the preceding messages from a model's output, and the ids by which
// upstream would look for such reasoning. Output whose reasoning is bound to the items after it stays unchanged.
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) {
	items, err := itemsOf(raw)
	if err != nil {
		return nil, fmt.Errorf("strip reasoning: %w", err)
	}
	if items[0].class() != modelOutput || !dependsOnEarlier(items) && !slices.ContainsFunc(items, (*item).isPrefixBound) {
		return raw, nil
	}
	var left [][]byte
	for _, it := range items {
		if !it.isPrefixBound() {
			left = append(left, it.withoutID())
		}
	}
	if len(left) == 0 {
		return d.Reply("(no text)"), nil
	}
	return split.Join(left), nil
}

// withoutID removes the id of an item. It does not remove the id of a reference or an approval request, which is their content.
func (it *item) withoutID() []byte {
	if it.Get("id").Kind == 0 || it.isReference() || it.is("mcp_approval_request") {
		return it.Raw
	}
	return split.WithoutMember(it.Raw, "id")
}

// Merge appends the content of second to that of first. Both are user messages.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	a, errFirst := single(first)
	b, errSecond := single(second)
	err := cmp.Or(errFirst, errSecond)
	if err == nil && (!a.isMessage() || !b.isMessage() || a.Get("content").Kind == 0) {
		err = errForm
	}
	if err != nil {
		return nil, fmt.Errorf("merge messages: %w", err)
	}
	parts := append(split.Parts(a.Get("content"), "input_text"), split.Parts(b.Get("content"), "input_text")...)
	return split.WithMember(a.Raw, "content", split.List(parts)), nil
}

// Join replaces the messages of a request. The rest of the body, including the instructions, stays as the client wrote it.
// A history that is a string or a single item becomes a list, unless its message is unchanged.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte {
	items := slices.DeleteFunc(slices.Clone(messages), isString) // without the instructions
	if item := loneItem(r); len(items) == 1 && item != nil && bytes.Equal(items[0], item) {
		return [][]byte{r.Body}
	}
	return asList(r).Join(items)
}

// loneItem returns the only item of a history that is a string or a single item, nil if it is a list.
func loneItem(r *dialect.Request) []byte {
	history := r.Body[r.ListSpan.From:r.ListSpan.To]
	switch {
	case len(history) == 0 || r.Body[r.ListSpan.From-1] == '[':
		return nil
	case isString(history):
		return userText(history)
	}
	return history
}

// asList returns a request whose history is a list: an empty one, to be filled by Join, if it was given without a list.
func asList(r *dialect.Request) *dialect.Request {
	if loneItem(r) == nil {
		return r
	}
	list := *r
	list.Body = slices.Concat(r.Body[:r.ListSpan.From], []byte("[]"), r.Body[r.ListSpan.To:])
	list.ListSpan = dialect.Span{From: r.ListSpan.From + 1, To: r.ListSpan.From + 1}
	return &list
}

// userText returns the user message that a history given as a string represents.
func userText(text []byte) []byte {
	return slices.Concat([]byte(`{"type":"message","role":"user","content":`), text, []byte{'}'})
}

// Compose returns a body with these messages and no model. They must have been returned by Split, Note or Reply.
func (d *Dialect) Compose(messages [][]byte) []byte {
	head := []byte(`{"model":"",`)
	if len(messages) > 0 && isString(messages[0]) {
		head = slices.Concat(head, []byte(`"instructions":`), messages[0], []byte{','})
		messages = messages[1:]
	}
	return slices.Concat(head, []byte(`"input":[`), split.Join(messages), []byte("]}"))
}
