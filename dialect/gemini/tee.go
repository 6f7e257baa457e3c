package gemini

import (
	"cmp"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Tee returns a reader for an answer: an object, a list of pieces, or a stream of events. A stream has no end mark. It counts as ended once
// the model has said why it stopped and what was used, in this order or the other.
func (d *Dialect) Tee(streamed bool) dialect.Tee {
	a := &answer{Collector: split.Collector{NoArguments: "{}"}}
	return &tee{split.NewTee(streamed, split.Done, a), a, streamed}
}

type tee struct {
	dialect.Tee
	answer   *answer
	streamed bool
}

// Ended implements dialect.Tee.
func (t *tee) Ended() bool {
	return t.Tee.Ended() || t.streamed && t.answer.Known.Finish != "" && t.answer.Known.Usage != nil
}

// Opening reports whether an event has neither a part nor a reason to stop.
func (d *Dialect) Opening(event []byte) bool {
	return split.Opening(event, func(v rawjson.Value) bool {
		v = answerIn(v)
		return split.Blank(split.Member(v, "candidates"), "index", "role") && split.Blank(split.Member(v, "error")) &&
			split.Member(v, "promptFeedback", "blockReason").Kind == 0
	})
}

// answer implements split.AnswerReader.
type answer struct {
	split.Collector
	whole bool // the answer is an object: its parts are joined as Read joins those of a history
}

// Whole reads an answer that is not streamed.
func (a *answer) Whole(body rawjson.Value) {
	a.whole = true
	a.Event(body)
}

// Event reads an event, a piece of a list, or a whole answer. Of several candidates only the first counts, except in Wrote.
func (a *answer) Event(event rawjson.Value) (ends bool) {
	v := answerIn(event)
	if e := split.Member(event, "error"); !split.Blank(e) {
		a.Fail(split.Member(e, "code"), split.Member(e, "status"))
	}
	for candidate := range rawjson.Elements(split.Member(v, "candidates").Raw) {
		a.addCandidate(candidate)
	}
	if feedback := split.Member(v, "promptFeedback"); split.Member(feedback, "blockReason").Text() != "" {
		reason := split.Member(feedback, "blockReason").Text()
		a.SetFinish(reason)
		a.AddRefusal(cmp.Or(split.Member(feedback, "blockReasonMessage").Text(), reason))
	}
	a.addUsage(split.Member(v, "usageMetadata"))
	if id := split.Member(v, "responseId").Text(); id != "" {
		a.Known.ID = split.Truncate(id)
	}
	return false
}

func (a *answer) addCandidate(candidate rawjson.Value) {
	first := split.Integer(split.Member(candidate, "index")) == 0
	for element := range rawjson.Elements(split.Member(candidate, "content", "parts").Raw) {
		p := partOf(element)
		text := p.Get("text")
		switch {
		case !first, p.isThought():
			a.Known.Wrote += len(text.Inner())
		case p.kind == isCall:
			if name := p.of.name.Text(); name != "" {
				a.BeginCall(len(a.Calls), p.of.id.Text(), name, split.TextOrJSON(p.of.value))
			}
		case text.Kind == rawjson.String && a.whole && len(text.Inner()) > 0:
			a.AddPart(text.Text())
		case text.Kind == rawjson.String:
			a.AddText(text.Text())
		default:
			a.Known.Ran = a.Known.Ran || split.Member(element, "executableCode").Kind == rawjson.Object
		}
	}
	if first {
		a.SetFinish(split.Member(candidate, "finishReason").Text())
	}
}

// addUsage reads a usage report, which replaces an earlier one. Cached tokens are part of the prompt, thoughts are not part of the candidates.
// https://ai.google.dev/api/generate-content#UsageMetadata
func (a *answer) addUsage(report rawjson.Value) {
	count := func(name string) int { return split.Integer(split.Member(report, name)) }
	if split.Member(report, "promptTokenCount").Kind != rawjson.Number {
		return
	}
	a.SetUsage(session.Usage{
		Input: count("promptTokenCount") + count("toolUsePromptTokenCount"), Cached: count("cachedContentTokenCount"),
		Output: count("candidatesTokenCount") + count("thoughtsTokenCount"),
	})
}
