package responses

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ dialect.Compactor = (*Dialect)(nil)

// RequestsCompaction reports whether the last item of a body is a compaction_trigger, or the path requests a compaction, and
// returns the model.
func (d *Dialect) RequestsCompaction(body []byte, byPath bool) (model string, asks bool) {
	if !byPath && !rawjson.MayHold(body, "compaction_trigger") || rawjson.Valid(body, 0) != nil {
		return "", byPath
	}
	all := rawjson.ValueOf(body)
	for element := range rawjson.Elements(split.Member(all, list).Raw) {
		asks = isTrigger(element)
	}
	return split.Truncate(split.Member(all, "model").Text()), asks || byPath
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
	var items [][]byte
	if history.Kind == rawjson.String {
		items = append(items, userText(history.Raw))
	}
	for element := range rawjson.Elements(history.Raw) {
		if !isTrigger(element) {
			items = append(items, element.Raw)
		}
	}
	return split.List(append(items, d.Note(question)))
}

// Unseal implements dialect.Compactor.
func (d *Dialect) Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error) {
	if !rawjson.MayHold(body, mark) || !split.IsObject(body) {
		return body, nil
	}
	items, opened := split.Elements(split.Member(rawjson.ValueOf(body), list)), false
	for i, raw := range items {
		if sealed := itemOf(rawjson.ValueOf(raw)).compaction(); strings.HasPrefix(sealed, mark) {
			text, err := open(sealed)
			if err != nil {
				return nil, err
			}
			items[i] = d.Note(text)
			opened = true
		}
	}
	if !opened {
		return body, nil
	}
	return split.WithMember(body, list, split.List(items)), nil
}

// compaction returns the content of a compaction, or "" if the item is not a compaction or only upstream has its content.
func (it *item) compaction() string {
	if it.isMessage() || it.class() != systemMessage {
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
