// Package overflow recognises an upstream's way of saying that a request does not fit the model's context window.
//
// There is no one way: each server of the OpenAI-compatible world has words of its own, several have changed them, and
// gateways wrap those of others. The words are in one table (rows), each with where they were seen; nothing else in the
// module matches an error's text. A new server is a row and a body in testdata.
//
// What is read are the error's own words, never the rest of a body: some servers give the request back in their errors,
// and an agent's request may well be about context windows.
package overflow

import (
	"cmp"
	"mime"
	"slices"
	"strings"
)

// maxBody is how much of a body is looked at, in bytes. Errors are short.
const maxBody = 64 << 10

// Overflow is what an upstream tells of a request that does not fit. No count is ever negative.
type Overflow struct {
	// Limit is the context window in tokens as the server tells it, 0 if it does not. Some servers (Gemini, xAI,
	// Copilot, Azure's GPT-5, DashScope) tell what the input alone may be, without the answer.
	Limit int

	// Prompt is the input (messages and tools) in tokens as the server counts it, 0 if it does not tell.
	Prompt int

	// AtLeast says that the server stopped counting at Prompt: the input may be far longer.
	AtLeast bool

	// Output is the answer asked for, in tokens; 0 if not told.
	Output int

	// ByOutput says that max_tokens is to blame, so that to shorten the history is no remedy: the input takes no more
	// than half of the window, or the answer asked for leaves no room for any input. An input that would have fitted
	// but is longer than half of the window is the ordinary overflow of a history that has grown: most servers add
	// max_tokens before they compare. With AtLeast, a caller that counts for itself knows better.
	ByOutput bool
}

// Recognise reads an upstream's answer before its first byte is relayed: its status, its Content-Type and the beginning
// of its body, decompressed. Of an event stream it reads the first event. An answer with a status of success counts only
// if it states an error in place of a completion, as some gateways do. It costs one pass over at most 64 KiB, keeps
// nothing of body, and may be called by any number of goroutines.
func Recognise(status int, contentType string, body []byte) (Overflow, bool) {
	r, ok := errorOf(status, contentType, body)
	if !ok {
		return Overflow{}, false
	}
	// Of a text that tells of a rate or a quota nothing is believed.
	if slices.ContainsFunc(r.texts, func(text string) bool { return says(text, others) }) {
		return Overflow{}, false
	}
	c, _, ok := r.find(rows)
	if !ok {
		return Overflow{}, false
	}
	c.limit, c.prompt = cmp.Or(c.limit, r.limit), cmp.Or(c.prompt, r.prompt)
	return c.overflow(), true
}

// AlternatesRoles reports whether an upstream's answer says that a request was refused because roles do not alternate. It is
// read as Recognise reads it.
func AlternatesRoles(status int, contentType string, body []byte) bool {
	r, ok := errorOf(status, contentType, body)
	if ok {
		_, _, ok = r.find(alternation)
	}
	return ok
}

// errorOf reads what an answer says of an error, if it can carry one.
func errorOf(status int, contentType string, body []byte) (report, bool) {
	if !tells(status) {
		return report{}, false
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err == nil && strings.Contains(kind, "html") {
		return report{}, false
	}
	r := read(payload(body[:min(len(body), maxBody)]))
	return r, status >= 400 || r.failed
}

// tells reports whether a status can carry an overflow. 401 to 404 and 429 have reasons of their own, whatever they say;
// some servers report an overflow as a failure of theirs.
func tells(status int) bool {
	return status/100 == 2 || status/100 == 5 || status == 400 || status == 413 || status == 422
}
