package assemble

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Takes reports whether more tools can be offered with a request: it has some, and leaves the model its choice among them.
func Takes(outside []byte) bool {
	body := rawjson.ValueOf(outside)
	choice := split.Member(body, "tool_choice")
	switch cmp.Or(choice.Text(), split.Member(choice, "type").Text(), "auto") {
	case "auto", "required", "any":
		return split.HasElements(split.Member(body, "tools"))
	}
	return false
}

// Form is how a dialect defines a tool: what stands before its name and description, the key of its parameters, and what ends it.
type Form struct{ Before, Parameters, After string }

// Offer adds tools to a request's own.
func (f Form) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	outside := r.Outside()
	list := split.Member(rawjson.ValueOf(outside), "tools")
	var text []byte
	for _, t := range tools {
		text = rawjson.AppendQuote(append(append(append(text, ','), f.Before...), `"name":`...), t.Name)
		text = rawjson.AppendQuote(append(text, `,"description":`...), t.Description)
		text = append(append(append(append(text, `,"`...), f.Parameters...), `":`...), t.Parameters...)
		text = append(text, f.After...)
	}
	return r.Splice(split.EndOf(outside, list)-1, text)
}
