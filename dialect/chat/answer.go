package chat

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Tee returns a reader for an answer. A stream ends with the [DONE] mark; Finish then shows whether the model had finished.
//
// Only the choice with index 0 counts, except in Wrote. The last usage reported, in the chunk or in the choice, counts.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	return split.NewTee(streamed, split.Done, &answer{})
}

// Opening reports whether an event is a chunk with nothing but a role.
func (d *Dialect) Opening(event []byte) bool {
	return split.Opening(event, func(chunk rawjson.Value) bool {
		choices := split.Member(chunk, "choices")
		return choices.Kind == rawjson.Array && split.Blank(choices, "index", "role") && split.Blank(split.Member(chunk, "error"))
	})
}

// answer implements split.AnswerReader.
type answer struct{ split.Collector }

func (a *answer) Whole(body rawjson.Value) { a.Event(body) }

// Event reads a chunk or a whole body.
func (a *answer) Event(chunk rawjson.Value) (ends bool) {
	for choice := range rawjson.Elements(split.Member(chunk, "choices").Raw) {
		message := split.Member(choice, "delta")
		if len(message.Raw) <= len("{}") { // Perplexity sends a delta and, next to it, the message so far
			message = split.Member(choice, "message")
		}
		a.addUsage(split.Member(choice, "usage"))
		if split.Integer(split.Member(choice, "index")) == 0 {
			a.SetFinish(split.Member(choice, "finish_reason").Text())
			a.addMessage(message)
		} else {
			a.Known.Wrote += len(split.Member(message, "content").Inner())
		}
	}
	a.addUsage(split.Member(chunk, "usage"))
	if e := split.Member(chunk, "error"); !split.Blank(e) {
		a.Fail(split.Member(e, "code"), split.Member(e, "status"), split.Member(e, "type"))
	}
	return false
}

// addMessage reads a delta or a whole message.
func (a *answer) addMessage(m rawjson.Value) {
	var c session.Content
	readContent(split.Member(m, "content"), &c)
	a.AddText(c.Text)
	a.Known.Wrote += max(len(split.Member(m, "reasoning_content").Inner()), len(split.Member(m, "reasoning").Inner()))
	a.AddRefusal(split.Member(m, "refusal").Text())
	for i, raw := range split.Elements(split.Member(m, "tool_calls")) {
		p := pieceOf(rawjson.ValueOf(raw), i)
		a.addCall(&p)
	}
	if called := split.Member(m, "function_call"); called.Kind == rawjson.Object {
		name := split.Truncate(split.Member(called, "name").Text())
		a.addCall(&piece{index: -1, id: name, name: name, arguments: split.Member(called, "arguments").Text()})
	}
}

// piece is the part of a call in one chunk.
type piece struct {
	index               int
	id, name, arguments string
	numbered            bool // index was given
	custom              bool // a custom tool, not a function
}

// pieceOf reads an element of tool_calls. If it has no index, its position is used.
func pieceOf(element rawjson.Value, position int) piece {
	p := piece{index: position, id: split.Truncate(split.Member(element, "id").Text())}
	if index := split.Member(element, "index"); index.Kind == rawjson.Number {
		p.index, p.numbered = split.Integer(index), true
	}
	called, arguments := split.Member(element, "function"), "arguments"
	if custom := split.Member(element, "custom"); custom.Kind == rawjson.Object {
		called, arguments, p.custom = custom, "input", true
	}
	p.name = split.Truncate(split.Member(called, "name").Text())
	p.arguments = split.Member(called, arguments).Text()
	return p
}

// addCall adds a piece to the newest call with its index. A piece with a name and another id starts a new call, since some
// servers give every call the index 0.
func (a *answer) addCall(p *piece) {
	at := len(a.Calls) - 1
	for at >= 0 && a.Calls[at].Index != p.index {
		at--
	}
	if at < 0 || p.name != "" && a.Calls[at].Name != "" && p.id != "" && p.id != a.Calls[at].ID {
		a.BeginCall(p.index, p.id, p.name, p.arguments)
		return
	}
	c := &a.Calls[at]
	c.ID, c.Name = cmp.Or(c.ID, p.id), cmp.Or(c.Name, p.name)
	a.AddArguments(c, p.arguments)
}

// addUsage reads a usage report, which replaces an earlier one. A report without token counts is ignored. Cached tokens are
// part of prompt_tokens; prompt_cache_hit_tokens is DeepSeek's name for them. So are tokens that were written to the cache at a price of their
// own: OpenAI and OpenRouter call them cache_write_tokens, LiteLLM cache_creation_tokens.
func (a *answer) addUsage(report rawjson.Value) {
	prompt, completion := split.Member(report, "prompt_tokens"), split.Member(report, "completion_tokens")
	if prompt.Kind != rawjson.Number && completion.Kind != rawjson.Number {
		return
	}
	cached, written := split.Member(report, "cached_tokens"), 0
	if details := split.Member(report, "prompt_tokens_details"); details.Kind == rawjson.Object {
		cached = split.Member(details, "cached_tokens")
		written = max(split.Integer(split.Member(details, "cache_write_tokens")), split.Integer(split.Member(details, "cache_creation_tokens")))
	}
	hits := split.Member(report, "prompt_cache_hit_tokens")
	a.SetUsage(session.Usage{
		Input: split.Integer(prompt), Cached: max(split.Integer(cached), split.Integer(hits)), Written: written, Output: split.Integer(completion),
	})
}
