// Package overflow recognises error responses that say a request does not fit the model's context window.
//
// There is no standard for them: each server of the OpenAI-compatible world has its own wording, several have changed it,
// and gateways wrap the wording of others. The known wordings are in one table (rows), each with a source. To add a server, add a row
// and a body in testdata. A wording that no row has is recognised by its form: words for the input beside words for too much, or
// a number of tokens above another one. Its reader must ask whether the overflow is believable. Nothing else in the module matches an
// error's text.
//
// Only the error's own words are read, never the rest of a body: some servers quote the request in their errors, and an
// agent's request may itself be about context windows.
package overflow

import (
	"cmp"
	"mime"
	"slices"
	"strings"
)

// maxBody bounds how much of a body is read, in bytes. Errors are short.
const maxBody = 64 << 10

// Overflow describes a request that does not fit, as the upstream reports it. No count is negative.
type Overflow struct {
	// Limit is the context window in tokens, or 0 if the server does not give it. Some servers (Gemini, xAI,
	// Copilot, Azure's GPT-5, DashScope) give the limit of the input alone, without the answer.
	Limit int

	// Prompt is the input (messages and tools) in tokens, as the server counts them, or 0 if it does not give the number.
	Prompt int

	// AtLeast means that the server stopped counting at Prompt: the input may be far longer.
	AtLeast bool

	// Output is the requested length of the answer in tokens, or 0 if the server does not give it.
	Output int

	// ByOutput means that max_tokens is to blame, and shortening the history does not help: the input takes at most
	// half of the window, or the requested answer leaves no room for any input. An input that would have fitted
	// but is longer than half of the window is the ordinary overflow of a history that has grown: most servers add
	// max_tokens before they compare. With AtLeast, Prompt may be too low: a caller with its own count should rely on that.
	ByOutput bool

	// Evidence says how the overflow was recognised. Unless a row states it, it counts only if it is Believable.
	Evidence Evidence
}

// Recognise reports whether an upstream's response is an overflow, and describes it. It takes the status, the Content-Type and
// the beginning of the decompressed body, of which it reads at most 64 KiB. Of an event stream it reads the first event.
// A response with a success status counts only if its body is an error in place of a completion, as some gateways send.
// Recognise does not retain body. It is safe for concurrent use.
func Recognise(status int, contentType string, body []byte) (Overflow, bool) {
	r, ok := parseError(status, contentType, body)
	if !ok {
		return Overflow{}, false
	}
	return r.overflow(status)
}

// overflow is Recognise for the error of a response with this status.
func (r report) overflow(status int) (Overflow, bool) {
	// A text about a rate or a quota is never an overflow, whatever else it says.
	if slices.ContainsFunc(r.texts, func(text string) bool { return containsAny(text, limitErrors) }) {
		return Overflow{}, false
	}
	c, ok := r.find(rows())
	evidence := Stated
	if !ok && r.mayHaveForm(status) {
		c, evidence, ok = r.form()
	}
	if !ok {
		return Overflow{}, false
	}
	c.limit, c.prompt = cmp.Or(c.limit, r.limit), cmp.Or(c.prompt, r.prompt)
	o := c.overflow()
	o.Evidence = evidence
	return o, true
}

// AlternatesRoles reports whether an upstream refused a request because its roles do not alternate. The arguments
// are those of Recognise.
func AlternatesRoles(status int, contentType string, body []byte) bool {
	r, ok := parseError(status, contentType, body)
	return ok && r.alternates()
}

func (r report) alternates() bool {
	_, ok := r.find(alternation())
	return ok
}

// Failure returns the status of a response that is a failure, 0 for any other. The arguments are those of Recognise. If the status is a
// success and the body an error in place of a completion, it is the status that the body states, 500 if it states none. If the error is about
// a rate, a quota or the load, it is 429, unless the status is a client error.
func Failure(status int, contentType string, body []byte) int {
	r, ok := parseError(status, contentType, body)
	switch {
	case ok:
		return r.failure(status)
	case status < 400:
		return 0
	}
	return status
}

// failure is Failure for the error of a response with this status.
func (r report) failure(status int) int {
	switch {
	case status/100 == 4:
		return status
	case slices.ContainsFunc(r.texts, func(text string) bool { return containsAny(text, limitErrors) || containsAny(text, loadErrors) }):
		return 429
	case status < 400 && r.code >= 400 && r.code < 600:
		return r.code
	}
	return max(status, 500)
}

// parseError reads the error in a response. It reports false if the response cannot be an overflow.
func parseError(status int, contentType string, body []byte) (report, bool) {
	switch {
	case status/100 == 2, status/100 == 5, status == 400, status == 413, status == 422: // some servers report it as a failure of their own
	default:
		return report{}, false // 401 to 404 and 429 have other causes, whatever the body says
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err == nil && strings.Contains(kind, "html") {
		return report{}, false
	}
	r := read(payload(body[:min(len(body), maxBody)]))
	return r, status >= 400 || r.failed
}
