package messages

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ dialect.Compactor = (*Dialect)(nil)

// compaction is the type of a block that replaces all preceding messages, and the member of a body that requests one.
// https://docs.claude.com/en/docs/build-with-claude/compaction
const compaction = "compaction"

// defaultLimit is the number of tokens above which the API compacts if the client gives none.
const defaultLimit = 150_000

// RequestsCompaction implements dialect.Compactor. The API has no path for compactions.
func (d *Dialect) RequestsCompaction(body []byte, _ bool) (model string, asks bool) {
	if rawjson.Valid(body, 0) != nil {
		return "", false
	}
	all := rawjson.ValueOf(body)
	return split.Truncate(split.Member(all, "model").Text()), split.Member(all, compaction).Kind == rawjson.Object
}

// StripManagement removes context_management from a body.
func (d *Dialect) StripManagement(body []byte) dialect.ContextManagement {
	return split.StripManagement(body, func(management rawjson.Value, m *dialect.ContextManagement) {
		for edit := range rawjson.Elements(split.Member(management, "edits").Raw) {
			if strings.HasPrefix(split.Member(edit, "type").Text(), "compact_") {
				m.Pauses = split.Member(edit, "pause_after_compaction").Kind == rawjson.True
				m.Instructions = split.Member(edit, "instructions").Text()
				m.Limit = cmp.Or(split.Integer(split.Member(edit, "trigger", "value")), defaultLimit)
			}
		}
	})
}

// compactionBlock matches a compaction block. It does not match inside strings, where quotes are escaped.
var compactionBlock = regexp.MustCompile(`"type"\s*:\s*"` + compaction + `"`)

// HasCompaction implements dialect.Compactor.
func (d *Dialect) HasCompaction(answer []byte) bool { return compactionBlock.Match(answer) }

// Ask appends a question to the history, followed by the client's instructions for the summary. Tools stay, since the
// history contains calls of them, but the model may not call them.
func (d *Dialect) Ask(body []byte, question string) (asked []byte, streamed bool) {
	all := rawjson.ValueOf(body)
	if more := split.Member(all, compaction, "instructions").Text(); strings.TrimSpace(more) != "" {
		question += "\n\n" + more
	}
	asked, streamed = split.Ask(body, list, func(history rawjson.Value) []byte {
		if history.Kind != rawjson.Array {
			return history.Raw
		}
		return split.List(placed(append(split.Elements(history), d.Note(question))))
	}, compaction, "output_config", "output_format")
	if split.HasElements(split.Member(all, "tools")) {
		asked = append(asked, `,"tool_choice":{"type":"none"}`...)
	}
	return append(asked, '}'), streamed
}

// Unseal implements dialect.Compactor. The resulting history starts with its newest compaction, since a compaction replaces everything
// before it. If the compaction's content starts with mark, it becomes a user message; otherwise it stays a block in a message of its own.
func (d *Dialect) Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error) {
	if !rawjson.MayHold(body, compaction) || !split.IsObject(body) { // Split reports an invalid body
		return body, nil
	}
	var kept [][]byte // the history from its newest compaction on, or nil if it has none
	for element := range rawjson.Elements(split.Member(rawjson.ValueOf(body), list).Raw) {
		block, rest := compactionIn(element, mark)
		if block.Kind != rawjson.Object {
			if kept != nil {
				kept = append(kept, element.Raw)
			}
			continue
		}
		first := split.WithMember(element.Raw, "content", split.List([][]byte{block.Raw}))
		if sealed := split.Member(block, "content").Text(); strings.HasPrefix(sealed, mark) {
			text, err := open(sealed)
			if err != nil {
				return body, err
			}
			first = d.Note(text)
		}
		kept = [][]byte{first}
		if len(rest) > 0 {
			kept = append(kept, split.WithMember(element.Raw, "content", split.List(rest)))
		}
	}
	if kept == nil {
		return body, nil
	}
	return split.WithMember(body, list, split.List(kept)), nil
}

// compactionIn returns the newest compaction in a message, and the blocks after it. It ignores compactions without content, which failed and
// replace nothing. Outside of the model's messages, it ignores compactions whose content does not start with mark; the others are the
// proxy's own, which upstream must not receive.
func compactionIn(message rawjson.Value, mark string) (block rawjson.Value, rest [][]byte) {
	if !rawjson.MayHold(message.Raw, compaction) {
		return block, nil
	}
	byModel := split.Member(message, "role").Is("assistant")
	for element := range rawjson.Elements(split.Member(message, "content").Raw) {
		content := split.Member(element, "content")
		counts := content.Kind == rawjson.String && (byModel || strings.HasPrefix(content.Text(), mark))
		if split.Member(element, "type").Is(compaction) && counts {
			block, rest = element, nil
		} else {
			rest = append(rest, element.Raw)
		}
	}
	return block, rest
}

// contentOf returns the content of a compaction block, or of the delta that contains it in a stream. It returns "" for other blocks.
func contentOf(block rawjson.Value) string {
	if !strings.HasPrefix(split.Member(block, "type").Text(), compaction) {
		return ""
	}
	return split.Member(block, "content").Text()
}

// Compaction encodes an answer with one compaction block.
func (d *Dialect) Compaction(c dialect.Compaction) []byte {
	block := rawjson.AppendQuote([]byte(`{"type":"compaction","content":`), c.Sealed)
	block = append(block, `,"encrypted_content":null}`...)
	if !c.Streamed {
		return messageOf(c, string(block), `"compaction"`)
	}
	var out []byte
	event := func(kind, rest string, values ...any) {
		out = fmt.Appendf(out, "event: %s\ndata: {\"type\":%q", kind, kind)
		out = append(fmt.Appendf(out, rest, values...), "}\n\n"...)
	}
	event("message_start", `,"message":%s`, messageOf(c, "", "null"))
	event("content_block_start", `,"index":0,"content_block":{"type":"compaction","content":null,"encrypted_content":null}`)
	delta := rawjson.AppendQuote([]byte(`{"type":"compaction_delta","content":`), c.Sealed)
	event("content_block_delta", `,"index":0,"delta":%s,"encrypted_content":null}`, delta)
	event("content_block_stop", `,"index":0`)
	event("message_delta", `,"delta":{"stop_reason":"compaction","stop_sequence":null},"usage":%s`, usageOf(c.Usage))
	event("message_stop", "")
	return out
}

func messageOf(c dialect.Compaction, content, stop string) []byte {
	out := rawjson.AppendQuote(fmt.Appendf(nil, `{"id":"msg_%s","type":"message","role":"assistant","model":`, c.ID), c.Model)
	return fmt.Appendf(out, `,"content":[%s],"stop_reason":%s,"stop_sequence":null,"usage":%s}`, content, stop, usageOf(c.Usage))
}

func usageOf(u *session.Usage) []byte {
	if u == nil {
		u = &session.Usage{}
	}
	return fmt.Appendf(nil, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`,
		u.Input-u.Cached-u.Written, u.Written, u.Cached, u.Output)
}
