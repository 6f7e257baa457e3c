package assemble

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// AcceptsTools reports whether more tools can be offered with a request: it has some and leaves the choice to the model.
func AcceptsTools(outside []byte) bool {
	body := rawjson.ValueOf(outside)
	choice := split.Member(body, "tool_choice")
	switch cmp.Or(choice.Text(), split.Member(choice, "type").Text(), "auto") {
	case "auto", "required", "any":
		return split.HasElements(split.Member(body, "tools"))
	}
	return false
}

// ToolFormat is how a dialect defines a tool: what precedes its name and description, the key of its parameters, and what
// ends it.
type ToolFormat struct{ Before, Parameters, After string }

// Offer appends tools to those of a request.
func (f ToolFormat) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	outside := r.Outside()
	list := split.Member(rawjson.ValueOf(outside), "tools")
	var text []byte
	for _, t := range tools {
		text = append(text, ","+f.Before+`"name":`...)
		text = rawjson.AppendQuote(text, t.Name)
		text = append(text, `,"description":`...)
		text = rawjson.AppendQuote(text, t.Description)
		text = append(text, `,"`+f.Parameters+`":`+t.Parameters+f.After...)
	}
	return r.Splice(split.EndOffset(outside, list)-1, text)
}
