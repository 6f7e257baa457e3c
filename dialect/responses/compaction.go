package responses

import (
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ dialect.Compactor = (*Dialect)(nil)

// RequestsCompaction reports whether a body has a compaction_trigger that nothing has answered yet, neither the model nor a compaction, or the
// path requests a compaction, and returns the model.
func (d *Dialect) RequestsCompaction(body []byte, byPath bool) (model string, asks bool) {
	if !byPath && !rawjson.MayHold(body, "compaction_trigger") || rawjson.Valid(body, 0) != nil {
		return "", byPath
	}
	all := rawjson.ValueOf(body)
	for element := range items(split.Member(all, list)) {
		switch it := itemOf(element); {
		case it.class() == compactionTrigger:
			asks = true
		case it.class() == modelOutput || it.isCompaction():
			asks = false
		}
	}
	return split.Truncate(split.Member(all, "model").Text()), asks || byPath
}

// items returns the items of a history, which may also be a single one. A history that is a string has none.
func items(history rawjson.Value) iter.Seq[rawjson.Value] {
	if history.Kind == rawjson.Object {
		return func(yield func(rawjson.Value) bool) { yield(history) }
	}
	return rawjson.Elements(history.Raw)
}

func isTrigger(element rawjson.Value) bool { return itemOf(element).class() == compactionTrigger }

// StripManagement removes context_management from a body.
func (d *Dialect) StripManagement(body []byte) dialect.ContextManagement {
	// https://platform.openai.com/docs/guides/compaction
	return split.StripManagement(body, func(management rawjson.Value, m *dialect.ContextManagement) {
		for element := range rawjson.Elements(management.Raw) {
			m.Limit = max(m.Limit, split.Integer(split.Member(element, "compact_threshold")))
		}
	})
}

// compactionItem matches a compaction. It does not match inside strings, where quotes are escaped.
var compactionItem = regexp.MustCompile(`"type"\s*:\s*"(compaction|compaction_summary|context_compaction)"`)

// HasCompaction implements dialect.Compactor.
func (d *Dialect) HasCompaction(answer []byte) bool { return compactionItem.Match(answer) }

// Ask removes the triggers from the history and appends a user message. Tools stay, since the history contains calls of them, but the model
// may not call them. If upstream stores the history and the body has none, the message becomes the body's history.
func (d *Dialect) Ask(body []byte, question string) (asked []byte, streamed bool) {
	asked, streamed = split.Ask(body, list, func(history rawjson.Value) []byte {
		return d.withQuestion(history, question)
	}, "stream_options", "text")
	member := func(name string) rawjson.Value { return split.Member(rawjson.ValueOf(body), name) }
	if member(list).Kind == 0 && kept(member) != (session.Kept{}) {
		asked = split.AppendMember(asked, rawjson.Key{Raw: []byte(list)}, d.withQuestion(rawjson.Value{}, question))
	}
	return append(asked, `,"tool_choice":"none"}`...), streamed
}

// withQuestion returns a history without triggers, followed by a question.
func (d *Dialect) withQuestion(history rawjson.Value, question string) []byte {
	var list [][]byte
	if history.Kind == rawjson.String {
		list = append(list, userText(history.Raw))
	}
	for element := range items(history) {
		if !isTrigger(element) {
			list = append(list, element.Raw)
		}
	}
	return split.List(append(list, d.Note(question)))
}

// Unseal implements dialect.Compactor.
func (d *Dialect) Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error) {
	if !rawjson.MayHold(body, mark) || !split.IsObject(body) {
		return body, nil
	}
	var history [][]byte
	opened := false
	for element := range items(split.Member(rawjson.ValueOf(body), list)) {
		raw := element.Raw
		if sealed := itemOf(element).compaction(); strings.HasPrefix(sealed, mark) {
			text, err := open(sealed)
			if err != nil {
				return nil, err
			}
			raw = d.Note(text)
			opened = true
		}
		history = append(history, raw)
	}
	if !opened {
		return body, nil
	}
	return split.WithMember(body, list, split.List(history)), nil
}

func (it *item) isCompaction() bool { return !it.isMessage() && it.class() == systemMessage }

// compaction returns the content of a compaction, or "" if the item is not a compaction or only upstream has its content.
func (it *item) compaction() string {
	if !it.isCompaction() {
		return ""
	}
	return split.Member(rawjson.ValueOf(it.Raw), "encrypted_content").Text()
}

// Compaction encodes an answer with one compaction item.
func (d *Dialect) Compaction(c dialect.Compaction) []byte {
	item := fmt.Appendf(nil, `{"type":"compaction","id":"cmp_%s","encrypted_content":`, c.ID)
	item = append(rawjson.AppendQuote(item, c.Sealed), '}')
	if c.ByPath {
		out := fmt.Appendf(nil, `{"id":"resp_%s","object":"response.compaction","created_at":0,"output":[%s],"usage":`, c.ID, item)
		return append(append(out, usageOf(c.Usage)...), '}')
	}
	if !c.Streamed {
		return responseOf(c, "completed", item)
	}
	var out []byte
	n := 0
	event := func(kind, key string, value []byte, more string) {
		out = fmt.Appendf(out, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s,%q:%s}\n\n", kind, kind, n, more, key, value)
		n++
	}
	event("response.created", "response", responseOf(c, "in_progress", nil), "")
	event("response.output_item.added", "item", item, `,"output_index":0`)
	event("response.output_item.done", "item", item, `,"output_index":0`)
	event("response.completed", "response", responseOf(c, "completed", item), "")
	return out
}

func responseOf(c dialect.Compaction, status string, item []byte) []byte {
	usage := []byte("null")
	if item != nil {
		usage = usageOf(c.Usage)
	}
	const head = `{"id":"resp_%s","object":"response","created_at":0,"status":%q,"error":null,"incomplete_details":null,"model":`
	out := rawjson.AppendQuote(fmt.Appendf(nil, head, c.ID, status), c.Model)
	const rest = `,"output":[%s],"tools":[],"tool_choice":"none","parallel_tool_calls":false,"usage":%s}`
	return fmt.Appendf(out, rest, item, usage)
}

func usageOf(u *session.Usage) []byte {
	if u == nil {
		return []byte("null")
	}
	const format = `{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},` +
		`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`
	return fmt.Appendf(nil, format, u.Input, u.Cached, u.Output, u.Input+u.Output)
}
