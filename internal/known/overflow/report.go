package overflow

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Bounds on what is read of a body. Gateways wrap an error at most three levels deep, as JSON in a JSON string; each
// level has an object or two. JSON nested more deeply is treated as text.
const (
	maxDepth = 12
	maxList  = 8
	maxTexts = 32
	maxText  = 16 << 10 // bytes of each
)

// report is what an error body contains: its texts, and the numbers that llama.cpp adds to them.
type report struct {
	texts         []string // folded: messages, codes and types
	limit, prompt int
	failed        bool   // the body itself states that it is an error
	code          int    // the status that the body states; 0: none
	field         string // the field of the request that the error is about; empty: it names none
}

// read extracts the texts of a body: the members that describe an error in JSON, everything in plain text.
func read(body []byte) report {
	var r report
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0 || body[0] == '<':
	case isJSON(body):
		v := rawjson.ValueOf(body)
		r.failed = statesError(v)
		r.walk(v, maxDepth)
	case body[0] != '{' && body[0] != '[':
		r.addText(string(body), 0)
	}
	return r
}

// find returns the counts of the first row that matches any of the texts.
func (r report) find(rows []row) (c counts, ok bool) {
	for _, row := range rows {
		for _, text := range r.texts {
			c, start, ok := row.find(text)
			if ok && !containsAny(text[:start], echoes) {
				return c, true
			}
		}
	}
	return counts{}, false
}

// isJSON reports whether text is a JSON object, array or string.
func isJSON(text []byte) bool {
	return (text[0] == '{' || text[0] == '[' || text[0] == '"') && rawjson.Valid(text, 0) == nil
}

// statesError reports whether a body states that it is an error. A completion has no error, or a null or an empty one.
func statesError(v rawjson.Value) bool {
	if v.Kind == rawjson.Array { // Gemini's
		for e := range rawjson.Elements(v.Raw) {
			if e.Kind == rawjson.Object && statesError(e) {
				return true
			}
		}
	}
	for k, m := range rawjson.Members(v.Raw) {
		switch string(k.Raw) {
		case "error", "errors":
			if len(m.Raw) > len(`""`) && (m.Kind == rawjson.Object || m.Kind == rawjson.String || m.Kind == rawjson.Array) {
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

// walk visits the members in which servers describe an error, and no others.
func (r *report) walk(v rawjson.Value, depth int) {
	if depth == 0 {
		return
	}
	switch v.Kind {
	case rawjson.String:
		r.addText(v.Text(), depth-1)
	case rawjson.Array:
		n := 0
		for e := range rawjson.Elements(v.Raw) {
			n++
			if n > maxList {
				return
			}
			r.walk(e, depth-1)
		}
	case rawjson.Object:
		for k, m := range rawjson.Members(v.Raw) {
			r.walkMember(string(k.Raw), m, depth-1)
		}
	}
}

func (r *report) walkMember(name string, v rawjson.Value, depth int) {
	switch strings.ToLower(name) {
	case "error", "errors", "message", "msg", "error_msg", "error_message", "errormessage", "error_description", "detail", "details", "description",
		"reason", "cause", "title", "metadata", "raw", "response", "originalmessage", "code", "type", "status":
		r.code = cmp.Or(r.code, countOf(v))
		r.walk(v, depth)
	case "param", "loc":
		r.field = cmp.Or(lastName(v), r.field)
	case "n_prompt_tokens":
		r.prompt = max(r.prompt, countOf(v))
	case "n_ctx":
		r.limit = max(r.limit, countOf(v))
	}
}

// lastName returns the name of the innermost field in a path: a string such as tools[0].name, or a list of names and positions.
func lastName(v rawjson.Value) (name string) {
	path := ""
	switch v.Kind {
	case rawjson.String:
		path = v.Text()
	case rawjson.Array:
		for e := range rawjson.Elements(v.Raw) {
			if e.Kind == rawjson.String {
				path = e.Text()
			}
		}
	}
	for part := range strings.FieldsFuncSeq(fold(path), func(r rune) bool { return strings.ContainsRune(".[]/", r) }) {
		if strings.Trim(part, "0123456789") != "" {
			name = part
		}
	}
	return name
}

// addText adds a text. A text that is JSON is a wrapped error, and is walked.
func (r *report) addText(text string, depth int) {
	text = strings.TrimSpace(text)
	if text == "" || len(r.texts) == maxTexts {
		return
	}
	if inner := []byte(text); depth > 0 && isJSON(inner) {
		r.walk(rawjson.ValueOf(inner), depth)
		return
	}
	r.texts = append(r.texts, fold(text[:min(len(text), maxText)]))
}

// countOf returns a JSON number as a token count, or 0.
func countOf(v rawjson.Value) int {
	if v.Kind != rawjson.Number {
		return 0
	}
	return parseCount(string(v.Raw))
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// unescape undoes the quoting of texts that were quoted once or more often.
var unescape = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ", `\`, "")

// fold normalises a text, so that differences in quoting and line wrapping do not matter: ASCII letters in lower case,
// no backslashes (an escaped line end is a space), and single spaces as the only white space.
func fold(text string) string {
	words := strings.FieldsFunc(unescape.Replace(text), func(r rune) bool { return strings.ContainsRune(" \n\r\t", r) })
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, strings.Join(words, " "))
}

// payload returns the data of the first event if body is an event stream, and body otherwise.
// See https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream.
func payload(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	fields := []string{"", "data", "event", "id", "retry"} // a comment's name is empty
	var data []byte
	stream := false
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		name, value, isField := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && data != nil:
			return data
		case isField && slices.Contains(fields, string(name)):
			stream = true
			if string(name) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		case len(line) > 0 && !stream:
			return body
		}
	}
	if !stream {
		return body
	}
	return data
}
