package responses

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Tee returns a reader for an answer. A stream ends with its final response event, an error event or the [DONE] mark.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	return split.NewTee(streamed, split.Done, &answer{})
}

// answer implements split.AnswerReader.
type answer struct {
	split.Collector
	said []byte // the items, with commas between them, up to one byte more than split.MaxText
	done bool   // the answer is complete
	sent int    // bytes of the deltas in a stream, including those of incomplete items
}

// Whole reads an answer that is not streamed.
func (a *answer) Whole(body rawjson.Value) { a.end(body) }

// Event reads an event of a stream. https://platform.openai.com/docs/api-reference/responses-streaming
func (a *answer) Event(event rawjson.Value) (ends bool) {
	a.sent += len(split.Member(event, "delta").Inner())
	switch split.Member(event, "type").Text() {
	case "response.output_item.done":
		a.addItem(split.Member(event, "item"))
	case "response.completed", "response.incomplete", "response.failed":
		a.end(split.Member(event, "response"))
		return true
	case "error":
		a.fail(event)
		return true
	}
	return false
}

func (a *answer) addItem(v rawjson.Value) {
	if v.Kind != rawjson.Object {
		return
	}
	if len(a.said) > 0 {
		a.said = append(a.said, ',')
	}
	a.said = append(a.said, v.Raw...)
	a.said = a.said[:min(len(a.said), split.MaxText+1)]
	it := itemOf(v)
	switch {
	case it.isMessage():
		c := contentReader{}
		c.readContent(it.Get("content"))
		a.AddPart(strings.Join(c.texts, "\n"))
		a.AddRefusal(c.refusal)
	case it.class() == systemMessage:
		a.AddCompaction(it.compaction())
	case it.callID().Kind == rawjson.String:
		call := it.call()
		a.BeginCall(0, call.ID, call.Name, call.Arguments)
	case bytes.HasSuffix(it.Get("type").Inner(), []byte("_call")):
		a.Known.Ran = true
	}
}

// end reads the response object at the end of an answer. Its items are skipped if the stream contained any.
func (a *answer) end(response rawjson.Value) {
	if len(a.said) == 0 {
		for element := range rawjson.Elements(split.Member(response, "output").Raw) {
			a.addItem(element)
		}
	}
	a.Known.ID = split.Truncate(split.Member(response, "id").Text())
	a.done = split.Member(response, "status").Is("completed")
	a.SetFinish(cmp.Or(split.Member(response, "incomplete_details", "reason").Text(), split.Member(response, "status").Text()))
	usage := split.Member(response, "usage")
	input, output := split.Member(usage, "input_tokens"), split.Member(usage, "output_tokens")
	if input.Kind == rawjson.Number || output.Kind == rawjson.Number {
		details := split.Member(usage, "input_tokens_details")
		a.SetUsage(session.Usage{
			Input: split.Integer(input), Cached: split.Integer(split.Member(details, "cached_tokens")),
			Written: split.Integer(split.Member(details, "cache_write_tokens")), Output: split.Integer(output),
		})
	}
	if split.Member(response, "error").Kind == rawjson.Object {
		a.fail(response)
	}
}

// fail records the error of a response or of an event, which may have the code itself.
func (a *answer) fail(v rawjson.Value) {
	a.Fail(split.Member(v, "error", "code"), split.Member(v, "error", "type"), split.Member(v, "code"))
}

// Answer returns what has been read so far.
func (a *answer) Answer() dialect.Answer {
	answer := a.Collector.Answer()
	answer.Wrote = max(answer.Wrote, a.sent)
	if len(a.said) <= split.MaxText {
		answer.Said = bytes.Clone(a.said)
		answer.Whole = a.done && len(a.said) > 0 && len(answer.Compactions) == 0
	}
	return answer
}

// Opening reports whether an event only says that an answer is in progress.
func (d *Dialect) Opening(event []byte) bool {
	return split.Opening(event, func(e rawjson.Value) bool {
		switch split.Member(e, "type").Text() {
		case "response.created", "response.queued", "response.in_progress":
			return true
		}
		return false
	})
}
