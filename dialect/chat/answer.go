package chat

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Tee begins to read an answer: a stream of chunks, or one body.
//
// Of a stream, Ended is true once the [DONE] mark has passed. Answer().Finish then tells whether the model had finished.
//
// Only the choice with index 0 counts. Usage is the last one reported, in the answer or in the choice.
func (d *Dialect) Tee(streamed bool) dialect.Tee { return split.Tee(streamed, split.Done, &answer{}) }

// answer gathers what chunks, or a whole body, tell.
type answer struct{ split.Gathered }

func (a *answer) Whole(body rawjson.Value) { a.Event(body) }

// Event takes a chunk or a whole body.
func (a *answer) Event(chunk rawjson.Value) (ends bool) {
	for choice := range rawjson.Elements(split.Member(chunk, "choices").Raw) {
		a.meter(split.Member(choice, "usage"))
		if split.Integer(split.Member(choice, "index")) == 0 {
			a.Stop(split.Member(choice, "finish_reason").Text())
			a.hear(split.Member(choice, "delta"))
			a.hear(split.Member(choice, "message"))
		}
	}
	a.meter(split.Member(chunk, "usage"))
	return false
}

// hear takes a delta, or a whole message.
func (a *answer) hear(v rawjson.Value) {
	content := split.Member(v, "content")
	a.Say(content.Text())
	for part := range rawjson.Elements(content.Raw) {
		if split.Member(part, "type").Is("text") {
			a.Say(split.Member(part, "text").Text())
		}
	}
	position := 0
	for element := range rawjson.Elements(split.Member(v, "tool_calls").Raw) {
		p := pieceOf(element, position)
		a.add(&p)
		position++
	}
	if called := split.Member(v, "function_call"); called.Kind == rawjson.Object {
		name := split.Member(called, "name").Text()
		a.add(&piece{index: -1, id: split.Cut(name), name: split.Cut(name), arguments: split.Member(called, "arguments").Text()})
	}
}

// piece is what one chunk tells of a call.
type piece struct {
	index               int
	id, name, arguments string
	numbered, custom    bool // it says its index; it is of no function
}

// pieceOf reads an element of tool_calls. Where it has no index, its position stands for it.
func pieceOf(element rawjson.Value, position int) piece {
	p := piece{index: position, id: split.Cut(split.Member(element, "id").Text())}
	if index := split.Member(element, "index"); index.Kind == rawjson.Number {
		p.index, p.numbered = split.Integer(index), true
	}
	called, arguments := split.Member(element, "function"), "arguments"
	if custom := split.Member(element, "custom"); custom.Kind == rawjson.Object {
		called, arguments, p.custom = custom, "input", true
	}
	p.name, p.arguments = split.Cut(split.Member(called, "name").Text()), split.Member(called, arguments).Text()
	return p
}

// add adds to the newest call of its index. A piece with another id and a name begins a new one: some servers give
// every call the index 0.
func (a *answer) add(p *piece) {
	at := len(a.Calls) - 1
	for at >= 0 && a.Calls[at].Index != p.index {
		at--
	}
	if at < 0 || p.name != "" && a.Calls[at].Name != "" && p.id != "" && p.id != a.Calls[at].ID {
		if c := a.Call(p.index, p.id, p.name); c != nil {
			a.Argue(c, p.arguments)
		}
		return
	}
	c := &a.Calls[at]
	c.ID, c.Name = cmp.Or(c.ID, p.id), cmp.Or(c.Name, p.name)
	a.Argue(c, p.arguments)
}

// meter takes a usage report; the last one counts. A report without token counts is none. Cached tokens are part of prompt_tokens;
// prompt_cache_hit_tokens is DeepSeek's name for them.
func (a *answer) meter(report rawjson.Value) {
	prompt, completion := split.Member(report, "prompt_tokens"), split.Member(report, "completion_tokens")
	if prompt.Kind != rawjson.Number && completion.Kind != rawjson.Number {
		return
	}
	cached := split.Member(report, "cached_tokens")
	if details := split.Member(report, "prompt_tokens_details"); details.Kind == rawjson.Object {
		cached = split.Member(details, "cached_tokens")
	}
	hits := split.Member(report, "prompt_cache_hit_tokens")
	a.Meter(split.Integer(prompt), max(split.Integer(cached), split.Integer(hits)), split.Integer(completion))
}
