package responses

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ dialect.Compactor = (*Dialect)(nil)

// Concerns reports whether a body names compactions.
func (d *Dialect) Concerns(body []byte) bool { return bytes.Contains(body, []byte("compaction")) }

// Compacts reports whether the last item of a body is a compaction_trigger, or its path asks, and names its model.
func (d *Dialect) Compacts(body []byte, byPath bool) (model string, asks bool) {
	if !byPath && !bytes.Contains(body, []byte("compaction_trigger")) || rawjson.Valid(body, 0) != nil {
		return "", byPath
	}
	all := rawjson.ValueOf(body)
	for element := range rawjson.Elements(split.Member(all, list).Raw) {
		asks = isTrigger(element)
	}
	return split.Cut(split.Member(all, "model").Text()), asks || byPath
}

func isTrigger(element rawjson.Value) bool { return itemOf(element).class() == wish }

// Manages takes context_management out of a body.
func (d *Dialect) Manages(body []byte) dialect.Managed { return split.Manages(body, readLimit) }

// readLimit reads the number of tokens above which upstream would compact.
// https://platform.openai.com/docs/guides/compaction
func readLimit(management rawjson.Value, m *dialect.Managed) {
	if management.Kind != rawjson.Array {
		return
	}
	for element := range rawjson.Elements(management.Raw) {
		m.Limit = max(m.Limit, split.Integer(split.Member(element, "compact_threshold")))
	}
}

// made finds an item that is a compaction. In texts its quotes are escaped.
var made = regexp.MustCompile(`"type"\s*:\s*"(compaction|compaction_summary|context_compaction)"`)

// Compacted reports whether an answer has an item that is a compaction.
func (d *Dialect) Compacted(answer []byte) bool { return made.Match(answer) }

// Ask gives a body with a message of the user in the place of its triggers. Tools stay, since the history has calls of them, but may
// not be called.
func (d *Dialect) Ask(body []byte, question string) (asked []byte, streamed bool) {
	asked, streamed = split.Ask(body, list, func(history rawjson.Value) []byte { return d.withQuestion(history, question) }, "stream_options", "text")
	return append(asked, `,"tool_choice":"none"}`...), streamed
}

// withQuestion is a history with a question behind it, and without triggers.
func (d *Dialect) withQuestion(history rawjson.Value, question string) []byte {
	var items [][]byte
	if history.Kind == rawjson.String {
		items = append(items, lone(history.Raw))
	}
	if history.Kind == rawjson.Array {
		for element := range rawjson.Elements(history.Raw) {
			if !isTrigger(element) {
				items = append(items, element.Raw)
			}
		}
	}
	return split.List(append(items, d.Note(question)))
}

// Unseal gives a body with a message of the user in the place of each compaction that begins with a mark.
func (d *Dialect) Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error) {
	if !bytes.Contains(body, []byte(mark)) || !split.Sound(body) {
		return body, nil
	}
	history := split.Member(rawjson.ValueOf(body), list)
	if history.Kind != rawjson.Array {
		return body, nil
	}
	items, opened := split.Raws(history), false
	for i, raw := range items {
		if sealed := compactionIn(rawjson.ValueOf(raw)); strings.HasPrefix(sealed, mark) {
			text, err := open(sealed)
			if err != nil {
				return nil, err
			}
			items[i], opened = d.Note(text), true
		}
	}
	if !opened {
		return body, nil
	}
	return split.WithMember(body, list, split.List(items)), nil
}

// compactionIn is what a compaction holds, empty if an item is none.
func compactionIn(element rawjson.Value) string {
	if it := itemOf(element); it.isMessage() || it.class() != system {
		return ""
	}
	return split.Member(element, "encrypted_content").Text()
}

// Compaction writes an answer with one item.
func (d *Dialect) Compaction(c dialect.Compaction) []byte {
	item := fmt.Appendf(nil, `{"type":"compaction","id":"cmp_%s","encrypted_content":`, c.ID)
	item = append(rawjson.AppendQuote(item, c.Sealed), '}')
	if c.Alone {
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
	out := fmt.Appendf(nil, `{"id":"resp_%s","object":"response","created_at":0,"status":%q,"error":null,"incomplete_details":null,"model":`, c.ID, status)
	out = append(rawjson.AppendQuote(out, c.Model), `,"output":[`...)
	out = append(append(out, item...), `],"tools":[],"tool_choice":"none","parallel_tool_calls":false,"usage":`...)
	if item == nil {
		return append(out, "null}"...)
	}
	return append(append(out, usageOf(c.Usage)...), '}')
}

func usageOf(u *session.Usage) []byte {
	if u == nil {
		return []byte("null")
	}
	return fmt.Appendf(nil, `{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},`+
		`"total_tokens":%d}`, u.Input, u.Cached, u.Output, u.Input+u.Output)
}
