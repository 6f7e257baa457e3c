package messages

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

// compaction is the type of a block that stands for all that is before it, and the member of a body that asks for one.
// https://docs.claude.com/en/docs/build-with-claude/compaction
const compaction = "compaction"

// defaultLimit is above how many tokens the API compacts where the client names no number.
const defaultLimit = 150_000

// Concerns reports whether a body names compactions.
func (d *Dialect) Concerns(body []byte) bool { return bytes.Contains(body, []byte(compaction)) }

// Compacts reports whether a body asks for its history as one block, and names its model.
func (d *Dialect) Compacts(body []byte, _ bool) (model string, asks bool) {
	if rawjson.Valid(body, 0) != nil {
		return "", false
	}
	all := rawjson.ValueOf(body)
	return split.Cut(split.Member(all, "model").Text()), split.Member(all, compaction).Kind == rawjson.Object
}

// Manages takes context_management out of a body.
func (d *Dialect) Manages(body []byte) dialect.Managed { return split.Manages(body, readEdit) }

// readEdit reads what an edit that compacts says.
func readEdit(management rawjson.Value, m *dialect.Managed) {
	for edit := range rawjson.Elements(split.Member(management, "edits").Raw) {
		if !strings.HasPrefix(split.Member(edit, "type").Text(), "compact_") {
			continue
		}
		m.Pauses, m.Instructions = split.Member(edit, "pause_after_compaction").Kind == rawjson.True, split.Member(edit, "instructions").Text()
		if m.Limit = split.Integer(split.Member(edit, "trigger", "value")); m.Limit == 0 {
			m.Limit = defaultLimit
		}
	}
}

// made finds a block that is a compaction. In texts its quotes are escaped.
var made = regexp.MustCompile(`"type"\s*:\s*"` + compaction + `"`)

// Compacted reports whether an answer has a block that is a compaction.
func (d *Dialect) Compacted(answer []byte) bool { return made.Match(answer) }

// Ask gives a body with a question behind its history, and the client's own instructions for a summary behind that. Tools stay, since
// the history has calls of them, but may not be called.
func (d *Dialect) Ask(body []byte, question string) (asked []byte, streamed bool) {
	all := rawjson.ValueOf(body)
	if more := split.Member(all, compaction, "instructions").Text(); strings.TrimSpace(more) != "" {
		question += "\n\n" + more
	}
	asked, streamed = split.Ask(body, list, func(history rawjson.Value) []byte {
		if history.Kind != rawjson.Array {
			return history.Raw
		}
		return split.List(append(split.Raws(history), d.Note(question)))
	}, compaction, "output_config", "output_format")
	if split.HasElements(split.Member(all, "tools")) {
		asked = append(asked, `,"tool_choice":{"type":"none"}`...)
	}
	return append(asked, '}'), streamed
}

// Unseal gives a body that begins with the newest compaction: with a message of the user if it begins with a mark, else with upstream's
// own block in a message of its own. What stands before it, it stands for.
func (d *Dialect) Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error) {
	if !made.Match(body) || !split.Sound(body) { // Split says what is wrong with it
		return body, nil
	}
	history := split.Member(rawjson.ValueOf(body), list)
	if history.Kind != rawjson.Array {
		return body, nil
	}
	kept, err := d.behind(history, mark, open)
	if kept == nil || err != nil {
		return body, err
	}
	return split.WithMember(body, list, split.List(kept)), nil
}

// behind is a history from its newest compaction on, nil if it has none.
func (d *Dialect) behind(history rawjson.Value, mark string, open func(string) (string, error)) (kept [][]byte, err error) {
	for element := range rawjson.Elements(history.Raw) {
		block, rest := compactionIn(element)
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
				return nil, err
			}
			first = d.Note(text)
		}
		if kept = [][]byte{first}; len(rest) > 0 {
			kept = append(kept, split.WithMember(element.Raw, "content", split.List(rest)))
		}
	}
	return kept, nil
}

// compactionIn is the newest compaction of a message, and the blocks behind it. One that failed has no content, and stands for nothing.
func compactionIn(message rawjson.Value) (block rawjson.Value, rest [][]byte) {
	if !made.Match(message.Raw) || !split.Member(message, "role").Is("assistant") {
		return block, nil
	}
	content := split.Member(message, "content")
	if content.Kind != rawjson.Array {
		return block, nil
	}
	for element := range rawjson.Elements(content.Raw) {
		if split.Member(element, "type").Is(compaction) && split.Member(element, "content").Kind == rawjson.String {
			block, rest = element, nil
		} else {
			rest = append(rest, element.Raw)
		}
	}
	return block, rest
}

// markOf names a compaction, or the part of a stream that holds one; empty if the block is none.
func markOf(block rawjson.Value) string {
	if held := split.Member(block, "content").Text(); held != "" && strings.HasPrefix(split.Member(block, "type").Text(), compaction) {
		return split.Mark(held)
	}
	return ""
}

// Compaction writes an answer with one block.
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
