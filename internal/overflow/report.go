package overflow

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Bounds on what is made of a body. Gateways wrap an error three levels deep at most, as JSON in a string of JSON; each
// level has an object or two. What is deeper is text.
const (
	maxDepth = 12
	maxList  = 8
	maxTexts = 32
	maxText  = 16 << 10 // bytes of each
)

// report is what an error says in words, and the numbers that llama.cpp adds to them.
type report struct {
	texts         []string // folded: messages, and codes and types, which are words too
	limit, prompt int
	failed        bool // the body says by itself that it is an error
}

// read takes the words out of a body: of JSON the members that are an error's, of plain text all of it.
func read(body []byte) report {
	var r report
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0 || body[0] == '<':
	case structured(body):
		v := rawjson.ValueOf(body)
		r.failed = states(v)
		r.walk(v, maxDepth)
	case body[0] != '{' && body[0] != '[':
		r.say(string(body), 0)
	}
	return r
}

// find looks for the first row that any of the texts has, and tells which it is.
func (r report) find(rows []row) (c counts, which int, ok bool) {
	for i, row := range rows {
		for _, text := range r.texts {
			c, at, ok := row.find(text)
			if ok && !says(text[:at], echoes) {
				return c, i, true
			}
		}
	}
	return counts{}, 0, false
}

// structured reports whether text is an object, an array or a string of JSON.
func structured(text []byte) bool {
	return (text[0] == '{' || text[0] == '[' || text[0] == '"') && rawjson.Valid(text, 0) == nil
}

// states reports whether a body says that it is an error. A completion has no error, or a null one.
func states(v rawjson.Value) bool {
	if v.Kind == rawjson.Array { // Gemini's
		for e := range rawjson.Elements(v.Raw) {
			if e.Kind == rawjson.Object && states(e) {
				return true
			}
		}
	}
	for k, m := range rawjson.Members(v.Raw) {
		switch string(k.Raw) {
		case "error", "errors":
			if m.Kind == rawjson.Object || m.Kind == rawjson.String || m.Kind == rawjson.Array {
				return true
			}
		case "object", "type":
			if m.Is("error") || m.Is("response.failed") {
				return true
			}
		}
	}
	return false
}

// walk goes through the members that servers put an error's words in, and through no others.
func (r *report) walk(v rawjson.Value, depth int) {
	if depth == 0 {
		return
	}
	switch v.Kind {
	case rawjson.String:
		r.say(v.Text(), depth-1)
	case rawjson.Array:
		n := 0
		for e := range rawjson.Elements(v.Raw) {
			if n++; n > maxList {
				return
			}
			r.walk(e, depth-1)
		}
	case rawjson.Object:
		for k, m := range rawjson.Members(v.Raw) {
			r.member(string(k.Raw), m, depth-1)
		}
	}
}

func (r *report) member(name string, v rawjson.Value, depth int) {
	switch name {
	case "error", "errors", "message", "msg", "error_msg", "error_message", "detail", "details",
		"metadata", "raw", "response", "code", "type", "status":
		r.walk(v, depth)
	case "n_prompt_tokens":
		r.prompt = max(r.prompt, whole(v))
	case "n_ctx":
		r.limit = max(r.limit, whole(v))
	}
}

// say notes a text. One that is JSON is another error, wrapped.
func (r *report) say(text string, depth int) {
	text = strings.TrimSpace(text)
	if text == "" || len(r.texts) == maxTexts {
		return
	}
	if inner := []byte(text); depth > 0 && structured(inner) {
		r.walk(rawjson.ValueOf(inner), depth)
		return
	}
	r.texts = append(r.texts, fold(text[:min(len(text), maxText)]))
}

func whole(v rawjson.Value) int {
	if v.Kind != rawjson.Number {
		return 0
	}
	return number(string(v.Raw))
}

func says(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
