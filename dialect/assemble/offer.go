package assemble

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// AcceptsTools reports whether more tools can be offered with a request: it has some, or its history defines some, and it leaves the choice
// to the model.
func AcceptsTools(outside []byte, defines bool) bool {
	body := rawjson.ValueOf(outside)
	choice := split.Member(body, "tool_choice")
	switch cmp.Or(choice.Text(), split.Member(choice, "type").Text(), "auto") {
	case "auto", "required", "any":
		return defines || split.HasElements(split.Member(body, "tools"))
	}
	return false
}

// Tools is how a dialect writes tools and the results of their calls.
type Tools struct {
	Before, Parameters, After string // what precedes the name and description of a tool, the key of its parameters, and what ends it
	Answer                    string // the format of a result, with the id of the call and a text
}

// Result encodes the result of a call.
func (f Tools) Result(call session.Call, text string) []byte {
	return fmt.Appendf(nil, f.Answer, rawjson.AppendQuote(nil, call.ID), rawjson.AppendQuote(nil, text))
}

// Offer appends tools to those of a request, which may have none.
func (f Tools) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	outside := r.Outside()
	list := split.Member(rawjson.ValueOf(outside), "tools")
	var text []byte
	for _, t := range tools {
		text = fmt.Appendf(text, `,%s"name":%s,"description":%s,"%s":%s%s`, f.Before,
			rawjson.AppendQuote(nil, t.Name), rawjson.AppendQuote(nil, t.Description), f.Parameters, t.Parameters, f.After)
	}
	switch {
	case split.HasElements(list):
		return r.Splice(split.EndOffset(outside, list)-1, text)
	case list.Kind == rawjson.Array:
		return r.Splice(split.EndOffset(outside, list)-1, text[1:])
	case list.Kind == rawjson.Null:
		end := split.EndOffset(outside, list)
		return r.Replace(dialect.Span{From: end - len(list.Raw), To: end}, slices.Concat([]byte{'['}, text[1:], []byte{']'}))
	}
	return r.Splice(bytes.LastIndexByte(outside, '}'), slices.Concat([]byte(`,"tools":[`), text[1:], []byte{']'}))
}
