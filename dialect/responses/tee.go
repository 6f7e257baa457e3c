package responses

import (
	"cmp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Tee begins to read an answer. Of a stream, Ended is true once its last event has passed, or an error.
func (d *Dialect) Tee(streamed bool) dialect.Tee { return split.Tee(streamed, split.Done, &answer{}) }

// answer gathers what events, or a whole body, tell.
type answer struct {
	split.Gathered
	said  []byte // its items, with commas between them
	items int
	spoke bool // one of them is a message
}

// Whole takes a whole answer.
func (a *answer) Whole(body rawjson.Value) { a.end(body) }

// Event takes an event of a stream. https://platform.openai.com/docs/api-reference/responses-streaming
func (a *answer) Event(event rawjson.Value) (ends bool) {
	switch split.Member(event, "type").Text() {
	case "response.output_item.done":
		a.add(split.Member(event, "item"))
	case "response.completed", "response.incomplete", "response.failed":
		a.end(split.Member(event, "response"))
		return true
	case "error":
		return true
	}
	return false
}

func (a *answer) add(v rawjson.Value) {
	if v.Kind != rawjson.Object {
		return
	}
	if a.items++; a.items > 1 {
		a.said = append(a.said, ',')
	}
	if a.said = append(a.said, v.Raw...); len(a.said) > split.MostText {
		a.said = a.said[:split.MostText+1] // what comes after that is not kept
	}
	it := itemOf(v)
	switch {
	case it.isMessage():
		r := reading{}
		r.content(it.Get("content"))
		if a.spoke {
			a.Say("\n")
		}
		a.Say(strings.Join(r.texts, "\n"))
		a.spoke = true
	case it.class() == system:
		if mark := it.mark(); mark != "" {
			a.Learnt.Compactions = append(a.Learnt.Compactions, mark)
		}
	case it.calls().Kind == rawjson.String:
		called := it.called()
		if c := a.Call(0, called.ID, called.Name); c != nil {
			a.Argue(c, called.Arguments)
		}
	}
}

// end takes the response as it is at its end. Items that came one by one stand in it, too.
func (a *answer) end(response rawjson.Value) {
	if a.items == 0 {
		for element := range rawjson.Elements(split.Member(response, "output").Raw) {
			a.add(element)
		}
	}
	a.Learnt.ID = split.Cut(split.Member(response, "id").Text())
	a.Stop(cmp.Or(split.Member(response, "incomplete_details", "reason").Text(), split.Member(response, "status").Text()))
	usage := split.Member(response, "usage")
	input, output := split.Member(usage, "input_tokens"), split.Member(usage, "output_tokens")
	if input.Kind == rawjson.Number || output.Kind == rawjson.Number {
		a.Meter(split.Integer(input), split.Integer(split.Member(usage, "input_tokens_details", "cached_tokens")), split.Integer(output))
	}
}

// Answer is what was learnt so far.
func (a *answer) Answer() dialect.Answer {
	answer := a.Gathered.Answer()
	if len(a.said) <= split.MostText {
		answer.Said = append([]byte(nil), a.said...)
	}
	return answer
}

// Opening reports whether an event only tells that an answer is being made.
func (d *Dialect) Opening(event []byte) (is bool) {
	events := split.Events{Most: split.MostAnswer, Take: func(data []byte) bool {
		if !split.Sound(data) {
			return false
		}
		switch split.Member(rawjson.ValueOf(data), "type").Text() {
		case "response.created", "response.queued", "response.in_progress":
			is = true
		}
		return true
	}}
	events.Write(event)
	return is
}
