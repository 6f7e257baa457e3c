package gemini

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// CanHideTools reports whether the client declares functions, leaves the choice to the model, asks for one candidate, and reads it whole or as
// events. A list of pieces is not filtered, nor are arguments that arrive in pieces.
func (d *Dialect) CanHideTools(r *dialect.Request) bool {
	request := requestIn(r.Outside())
	calling := member(member(request, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config")
	switch strings.ToUpper(split.Member(calling, "mode").Text()) {
	case "", "AUTO", "MODE_UNSPECIFIED", "ANY", "VALIDATED":
	default:
		return false
	}
	named := split.HasElements(member(calling, "allowedFunctionNames", "allowed_function_names"))
	pieces := member(calling, "streamFunctionCallArguments", "stream_function_call_arguments").Kind == rawjson.True
	return !named && !pieces && !r.Pieces && r.Choices <= 1 && declarations(request).Kind == rawjson.Array
}

// declarations returns the first list of functions that is not empty.
func declarations(request rawjson.Value) rawjson.Value {
	for tool := range rawjson.Elements(split.Member(request, "tools").Raw) {
		if all := member(tool, "functionDeclarations", "function_declarations"); split.HasElements(all) {
			return all
		}
	}
	return rawjson.Value{}
}

// Offer declares more functions beside the client's: requests may have only one list of them on some servers.
func (d *Dialect) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	outside := r.Outside()
	list := declarations(requestIn(outside))
	if list.Kind == 0 {
		return r
	}
	var text []byte
	for _, t := range tools {
		text = fmt.Appendf(text, `,{"name":%s,"description":%s,"parametersJsonSchema":%s}`,
			rawjson.AppendQuote(nil, t.Name), rawjson.AppendQuote(nil, t.Description), t.Parameters)
	}
	return r.Splice(split.EndOffset(outside, list)-1, text)
}

// Result encodes the result of a call.
func (d *Dialect) Result(call session.Call, text string) []byte {
	id := ""
	if call.ID != "" {
		id = fmt.Sprintf(`"id":%s,`, rawjson.AppendQuote(nil, call.ID))
	}
	return fmt.Appendf(nil, `{"functionResponse":{%s"name":%s,"response":{"output":%s}}}`,
		id, rawjson.AppendQuote(nil, call.Name), rawjson.AppendQuote(nil, text))
}

// FilterAnswers returns a filter that removes calls of hidden tools from answers.
func (d *Dialect) FilterAnswers(streamed bool, hidden func(tool string) bool) dialect.AnswerFilter {
	return assemble.NewFilter(streamed, &filter{State: assemble.State{Hidden: hidden}})
}

// filter implements assemble.Reader. The parts in its State are those of contents.
type filter struct {
	assemble.State
	id        []byte // of the first answer
	finish    string // why this answer ended
	signature []byte // of a hidden call, for the first call of the client's: servers refuse a step whose first call has none
	calls     int    // of this answer
}

// Next starts another answer.
func (f *filter) Next() {
	f.NextAnswer()
	f.finish, f.signature, f.calls = "", nil, 0
}

// Said returns what the model said in this answer, with the message as it is sent back to upstream.
func (f *filter) Said() dialect.Said {
	said, parts := f.Summary(f.complete())
	if len(parts) > 0 {
		said.Message = message("model", parts...)
	}
	return said
}

// complete reports whether the answer was not cut off.
func (f *filter) complete() bool { return f.finish == "STOP" || f.finish == "" && f.Framed }

// Echo returns the message as the client received it.
func (f *filter) Echo() []byte {
	shown := f.Shown()
	if len(shown) == 0 {
		return nil
	}
	return message("model", joinTexts(shown)...)
}

// joinTexts joins the texts that follow each other, as clients do with the pieces of a stream.
func joinTexts(parts [][]byte) (joined [][]byte) {
	text, open := "", false
	flush := func() {
		if open {
			joined = append(joined, textPart(text))
		}
		text, open = "", false
	}
	for _, raw := range parts {
		p := partOf(rawjson.ValueOf(raw))
		if p.isText() && !p.More && !p.isThought() && p.get("thoughtSignature", "thought_signature").Kind == 0 {
			text, open = text+p.Get("text").Text(), true
			continue
		}
		flush()
		joined = append(joined, raw)
	}
	flush()
	return joined
}

// take reads the parts of a content and returns those that the client receives. changed reports whether they differ.
func (f *filter) take(content rawjson.Value) (shown [][]byte, changed bool) {
	for element := range rawjson.Elements(split.Member(content, "parts").Raw) {
		kept := f.part(element)
		if kept.Shown != nil {
			shown = append(shown, kept.Shown)
		}
		changed = changed || !bytes.Equal(kept.Shown, element.Raw)
		f.AddPart(kept)
	}
	return shown, changed
}

// part counts a part and returns it as it is kept.
func (f *filter) part(element rawjson.Value) assemble.Part {
	p := partOf(element)
	raw, signature := bytes.Clone(element.Raw), p.get("thoughtSignature", "thought_signature").Raw
	if p.kind != isCall {
		return assemble.Part{Raw: raw, Shown: raw}
	}
	f.calls++
	if f.Hidden(p.of.name.Text()) {
		f.Concealed++
		if f.calls == 1 {
			f.signature = bytes.Clone(signature)
		}
		return hiddenPart(&p, raw)
	}
	f.Own++
	shown := raw
	if len(signature) == 0 {
		shown = split.WithMember(raw, "thoughtSignature", f.signature)
	}
	f.signature = nil
	return assemble.Part{Raw: raw, Shown: shown}
}

// hiddenPart returns the part of a hidden call. Long arguments are cut.
func hiddenPart(p *part, raw []byte) assemble.Part {
	call := session.Call{ID: p.of.id.Text(), Name: p.of.name.Text(), Arguments: cmp.Or(split.TextOrJSON(p.of.value), "{}")}
	if len(call.Arguments) > dialect.MaxArguments {
		call.Arguments = strings.Clone(call.Arguments[:dialect.MaxArguments+1])
		name := "functionCall"
		if p.Get(name).Kind == 0 {
			name = "function_call"
		}
		raw = bytes.Clone(split.WithMember(raw, name, split.WithMember(p.Get(name).Raw, "args", []byte("{}")))) // its buffer is as large as the call was
	}
	return assemble.Part{Raw: raw, Call: &call}
}

// firstCandidate returns the first candidate of an answer.
func firstCandidate(answer rawjson.Value) rawjson.Value {
	for element := range rawjson.Elements(split.Member(answer, "candidates").Raw) {
		return element
	}
	return rawjson.Value{}
}

// Whole reads an answer that is not streamed.
func (f *filter) Whole(body []byte) {
	answer := answerIn(rawjson.ValueOf(body))
	candidate := firstCandidate(answer)
	f.take(split.Member(candidate, "content"))
	f.finish = split.Member(candidate, "finishReason").Text()
	f.SetUsage(split.Member(answer, "usageMetadata"))
}

// Rest returns an answer that is not streamed as the client receives it.
func (f *filter) Rest(body []byte) []byte {
	answer := answerIn(rawjson.ValueOf(body))
	if !f.Differs() || firstCandidate(answer).Kind == 0 {
		return body
	}
	out := withParts(answer.Raw, f.Shown(), "")
	return rewrapped(body, answer, split.WithMember(out, "usageMetadata", f.TotalUsage()))
}

// withParts replaces the parts of the first candidate, and its finishReason if finish is not empty: "-" removes it.
func withParts(answer []byte, parts [][]byte, finish string) []byte {
	if len(parts) == 0 {
		parts = [][]byte{textPart("")}
	}
	candidate := firstCandidate(rawjson.ValueOf(answer))
	content := split.Member(candidate, "content").Raw
	if len(content) == 0 {
		content = []byte(`{"role":"model"}`)
	}
	out := split.WithMember(candidate.Raw, "content", split.WithMember(content, "parts", split.List(parts)))
	if finish == "-" {
		out = split.WithoutMember(out, "finishReason")
	}
	return split.WithMember(answer, "candidates", split.List([][]byte{out}))
}

// rewrapped puts a changed answer in the place of the one in a body.
func rewrapped(body []byte, answer rawjson.Value, changed []byte) []byte {
	if len(answer.Raw) == len(body) {
		return changed
	}
	return split.WithMember(body, "response", changed)
}

// Event reads an event of a stream.
func (f *filter) Event(data []byte) assemble.Output {
	if string(data) == split.Done {
		return assemble.Output{Text: data}
	}
	event := rawjson.ValueOf(data)
	answer := answerIn(event)
	candidate := firstCandidate(answer)
	f.SetUsage(split.Member(answer, "usageMetadata"))
	shown, changed := f.take(split.Member(candidate, "content"))
	finish := split.Member(candidate, "finishReason").Text()
	f.finish = cmp.Or(finish, f.finish)
	whole := f.outer(answer)
	out := func(raw []byte) []byte { return rewrapped(data, answer, raw) }
	switch {
	case finish != "" && f.OnlyHidden(f.complete()):
		o := assemble.Output{End: out(withParts(whole, nil, ""))}
		if len(shown) > 0 {
			o.Text = out(withParts(whole, shown, "-"))
		}
		return o
	case changed && len(shown) == 0 && finish == "":
		return assemble.Output{}
	case changed:
		whole = withParts(whole, shown, "")
	case len(whole) == len(answer.Raw) && bytes.Equal(whole, answer.Raw):
		return assemble.Output{Text: data}
	}
	return assemble.Output{Text: out(whole)}
}

// outer returns an answer with the id of the first one, and with the usage of all.
func (f *filter) outer(answer rawjson.Value) []byte {
	id := split.Member(answer, "responseId")
	if f.Answers == 0 {
		if f.id == nil {
			f.id = bytes.Clone(id.Raw)
		}
		return answer.Raw
	}
	out := slices.Clip(answer.Raw)
	if id.Kind != 0 {
		out = split.WithMember(out, "responseId", f.id)
	}
	if split.Member(answer, "usageMetadata").Kind == rawjson.Object {
		out = split.WithMember(out, "usageMetadata", f.TotalUsage())
	}
	return out
}
