package gemini

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Rewrite replaces the text and the attachments of a message with text. Calls stay, with their signatures. A run of parts becomes one text part.
// The system instruction cannot be rewritten.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	p, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	switch p.form {
	case system:
		return nil, errors.New("rewrite message: cannot rewrite the system instruction")
	case run:
		return textPart(text), nil
	case result:
		return rewriteResult(elements(p.parts)[0], text), nil
	}
	if p.role == "tool" {
		return split.WithMember(raw, "parts", split.List([][]byte{rewriteResult(elements(p.parts)[0], text)})), nil
	}
	parts := [][]byte{textPart(text)}
	for element := range rawjson.Elements(p.parts) {
		if member(element, "functionCall", "function_call").Kind != 0 {
			parts = append(parts, element.Raw)
		}
	}
	return split.WithMember(raw, "parts", split.List(parts)), nil
}

// rewriteResult replaces the response in a result, under the key of its text if it has one, and drops its attachments.
func rewriteResult(raw []byte, text string) []byte {
	name := "functionResponse"
	if split.Member(rawjson.ValueOf(raw), name).Kind == 0 {
		name = "function_response"
	}
	answer := split.Member(rawjson.ValueOf(raw), name)
	_, key := responseText(split.Member(answer, "response"))
	response := fmt.Appendf(nil, `{%s:%s}`, rawjson.AppendQuote(nil, cmp.Or(key, "output")), rawjson.AppendQuote(nil, text))
	return split.WithMember(raw, name, split.WithoutMember(split.WithMember(answer.Raw, "response", response), "parts"))
}

// StripReasoning returns the message as it is: a signature is bound to its own call, and refused where it is missing, not where it stands.
// https://ai.google.dev/gemini-api/docs/thought-signatures
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) { return raw, nil }

// Merge appends the parts of second to those of first. Both are user messages.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	a, errFirst := parse(first)
	b, errSecond := parse(second)
	if err := cmp.Or(errFirst, errSecond); err != nil {
		return nil, fmt.Errorf("merge messages: %w", err)
	}
	merged := append(elements(a.parts), elements(b.parts)...)
	if a.form != whole {
		return split.Join(merged), nil
	}
	return split.WithMember(first, "parts", split.List(merged)), nil
}

func elements(list []byte) [][]byte {
	if len(list) == 0 {
		return nil
	}
	return split.Elements(rawjson.ValueOf(list))
}

// Join replaces the messages of a request. The rest of the body, including the system instruction, stays as the client wrote it. Consecutive
// results and other parts form one user message.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte {
	parts := append(make([][]byte, 0, 2*len(messages)+2), r.Before())
	open := false // a user message
	for i, raw := range messages {
		f := formOf(raw)
		if f == system {
			continue
		}
		if open && f == whole { // the client's results stand beside those of hidden calls
			raw, f = besides(raw)
		}
		isPart := f == result || f == run
		if open && !isPart {
			parts = append(parts, closing)
		}
		if len(parts) > 1 {
			parts = append(parts, comma)
		}
		if isPart && !open {
			parts = append(parts, opening)
		}
		if i > 0 && needsUser(r, messages[i-1], raw) {
			parts = append(parts, message("user", textPart(omission)), comma)
		}
		parts = append(parts, raw)
		open = isPart
	}
	if open {
		parts = append(parts, closing)
	}
	return append(parts, r.After())
}

// besides returns the result in a whole message, or the message as it is.
func besides(raw []byte) ([]byte, form) {
	if p, err := parse(raw); err == nil && p.role == "tool" {
		return elements(p.parts)[0], result
	}
	return raw, whole
}

// omission stands between an answer and a call that did not follow it.
const omission = "[Earlier messages are left out here.]"

// needsUser reports whether a message of the user has to stand between two messages: servers refuse a call behind an answer, unless it is the
// next part of that answer, as some clients send the parts of a stream.
func needsUser(r *dialect.Request, before, after []byte) bool {
	if len(r.Messages) == 0 || !isModel(before) || !isModel(after) || !slices.ContainsFunc(elements(split.Member(rawjson.ValueOf(after), "parts").Raw), holdsCall) {
		return false
	}
	at := slices.IndexFunc(r.Messages, func(m session.Message) bool { return same(m.Raw, before) })
	return at < 0 || at+1 == len(r.Messages) || !same(r.Messages[at+1].Raw, after)
}

func isModel(raw []byte) bool {
	return formOf(raw) == whole && roleOf(split.Member(rawjson.ValueOf(raw), "role")) == "model"
}

func holdsCall(raw []byte) bool { p := partOf(rawjson.ValueOf(raw)); return p.kind == isCall }

// same reports whether two slices are the same bytes of a body.
func same(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

var (
	comma   = []byte{','}
	opening = []byte(`{"role":"user","parts":[`)
	closing = []byte("]}")
)

// Compose returns a body with these messages and nothing else. They must have been returned by Split, Note or Reply.
func (d *Dialect) Compose(messages [][]byte) []byte {
	head := []byte(`{`)
	for _, raw := range messages {
		if formOf(raw) == system {
			head = slices.Concat(head, []byte(`"systemInstruction":{"parts":`), raw, []byte(`},`))
			break
		}
	}
	head = append(head, `"contents":[`...)
	empty := &dialect.Request{Body: append(head, "]}"...), ListSpan: dialect.Span{From: len(head), To: len(head)}}
	return slices.Concat(d.Join(empty, messages)...)
}
