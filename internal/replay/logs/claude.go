package logs

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// claude reads a session file of Claude Code: a line for each block of an answer, and for each message of the user. System prompt and tools
// are not in it. Sub-agents have files of their own, or lines among the others that are marked as a side chain.
type claude struct {
	out   *output
	main  *claudeHistory
	sides []*claudeHistory
	owner map[string]*claudeHistory // by the id of a line
}

type claudeLine struct {
	Type, Subtype     string
	UUID              string  `json:"uuid"`
	Parent            *string `json:"parentUuid"`
	Agent             string  `json:"agentId"`
	IsSidechain       bool    `json:"isSidechain"`
	IsCompactSummary  bool    `json:"isCompactSummary"`
	IsAPIErrorMessage bool    `json:"isApiErrorMessage"`
	Compaction        struct {
		Kept struct {
			UUIDs []string `json:"uuids"`
		} `json:"preservedMessages"`
	} `json:"compactMetadata"`
	Message struct {
		ID      string
		Model   string
		Content json.RawMessage
		Usage   struct {
			Input   int `json:"input_tokens"`
			Read    int `json:"cache_read_input_tokens"`
			Written int `json:"cache_creation_input_tokens"`
		}
	}
}

func newClaude(out *output) *claude {
	return &claude{out: out, main: newClaudeHistory(""), owner: map[string]*claudeHistory{}}
}

func (c *claude) line(raw []byte) error {
	var l claudeLine
	if !decoded(raw, &l) {
		return nil
	}
	h := c.historyOf(&l)
	if l.UUID != "" {
		c.owner[l.UUID] = h
	}
	if l.Subtype == "compact_boundary" || l.IsCompactSummary && !h.compacted {
		if err := h.compact(&l, c.out); err != nil {
			return err
		}
	}
	var err error
	switch l.Type {
	case "user":
		err = h.user(&l, c.out)
	case "assistant":
		h.assistant(&l)
	}
	h.ends[l.UUID] = len(h.turns)
	return err
}

// decoded decodes a line. It reports whether the line has the form that matters here.
func decoded(raw []byte, into any) bool { return json.Unmarshal(raw, into) == nil }

func (c *claude) end() error {
	for _, h := range slices.Concat([]*claudeHistory{c.main}, c.sides) {
		if err := h.emit(c.out); err != nil {
			return err
		}
	}
	return nil
}

// historyOf returns the history that a line belongs to.
func (c *claude) historyOf(l *claudeLine) *claudeHistory {
	if !l.IsSidechain {
		return c.main
	}
	if l.Parent != nil && l.Agent == "" {
		if h := c.owner[*l.Parent]; h != nil && h != c.main {
			return h
		}
	}
	for _, h := range c.sides {
		if l.Agent != "" && h.agent == l.Agent {
			return h
		}
	}
	h := newClaudeHistory(l.Agent)
	h.label = "sub-agent"
	c.sides = append(c.sides, h)
	return h
}

// claudeHistory is one history of a session.
type claudeHistory struct {
	agent, label string
	turns        []turn
	begin        int
	compacted    bool           // the summary of a compaction is to come
	kept         []turn         // what stays behind that summary
	ends         map[string]int // id of a line -> turns there were after it
}

// turn is a message in the making.
type turn struct {
	user   bool
	id     string // of an answer
	blocks []json.RawMessage
	replay.Recorded
}

func (t turn) role() string {
	if t.user {
		return "user"
	}
	return "assistant"
}

func newClaudeHistory(agent string) *claudeHistory {
	return &claudeHistory{agent: agent, ends: map[string]int{}}
}

// user adds a message of the user. Messages that follow each other are one in a request. A message whose parent is further back than the last
// answer goes on from there: the user went back.
func (h *claudeHistory) user(l *claudeLine, out *output) error {
	blocks := blocksOf(l.Message.Content)
	if len(blocks) == 0 {
		return nil
	}
	if at, ok := h.parent(l); ok && !hasResult(blocks) && slices.ContainsFunc(h.turns[at:], func(t turn) bool { return !t.user }) {
		if err := h.emit(out); err != nil {
			return err
		}
		h.turns, h.begin = slices.Clone(h.turns[:at]), at
	}
	if h.compacted {
		h.turns = append([]turn{{user: true, blocks: blocks}}, h.kept...)
		h.begin, h.compacted, h.kept = len(h.turns), false, nil
		return nil
	}
	if last := len(h.turns) - 1; last >= 0 && h.turns[last].user {
		h.turns[last].blocks = append(slices.Clip(h.turns[last].blocks), blocks...)
		return nil
	}
	h.turns = append(h.turns, turn{user: true, blocks: blocks})
	return nil
}

// parent returns how many turns there were after the parent of a line.
func (h *claudeHistory) parent(l *claudeLine) (at int, ok bool) {
	if l.Parent == nil {
		return 0, false
	}
	at, ok = h.ends[*l.Parent]
	return min(at, len(h.turns)), ok
}

// assistant adds a block of an answer. Blocks with the same id are one answer, even with a result between them.
func (h *claudeHistory) assistant(l *claudeLine) {
	blocks := blocksOf(l.Message.Content)
	if len(blocks) == 0 || l.IsAPIErrorMessage || l.Message.Model == "<synthetic>" {
		return
	}
	for i := len(h.turns) - 1; i >= max(0, len(h.turns)-2) && l.Message.ID != ""; i-- {
		if h.turns[i].id == l.Message.ID {
			h.turns[i].blocks = append(h.turns[i].blocks, blocks...)
			return
		}
	}
	u := l.Message.Usage
	recorded := replay.Recorded{Model: l.Message.Model, Prompt: u.Input + u.Read + u.Written}
	h.turns = append(h.turns, turn{id: l.Message.ID, blocks: blocks, Recorded: recorded})
}

// compact hands over the history, and begins a new one with what a compaction keeps. Its summary is the next message.
func (h *claudeHistory) compact(l *claudeLine, out *output) error {
	if err := h.emit(out); err != nil {
		return err
	}
	var kept []turn
	last := -1
	for _, id := range l.Compaction.Kept.UUIDs {
		if at := h.ends[id] - 1; at > last && at < len(h.turns) {
			kept = append(kept, h.turns[at])
			last = at
		}
	}
	*h = claudeHistory{agent: h.agent, label: h.label, ends: map[string]int{}, compacted: true, kept: kept}
	return nil
}

func (h *claudeHistory) emit(out *output) error {
	made := history{protocol: replay.ProtocolMessages, label: h.label, begin: h.begin}
	for i, t := range h.turns {
		if !t.user {
			made.answers = append(made.answers, answer{at: i, id: t.id, Recorded: t.Recorded})
		}
		made.messages = append(made.messages, anthropic(t.role(), t.blocks))
	}
	return out.emit(&made)
}

// anthropic encodes a message of the Messages API.
func anthropic(role string, blocks []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"role":"` + role + `","content":[`)
	for i, block := range blocks {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(block)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// blocksOf returns the blocks of a message's content, which may be a text.
func blocksOf(content json.RawMessage) []json.RawMessage {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if text == "" {
			return nil
		}
		content = slices.Concat(json.RawMessage(`[{"type":"text","text":`), encode(text), json.RawMessage(`}]`))
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(content, &blocks) // other content has none
	for i, block := range blocks {
		blocks[i] = unmarked(block)
	}
	return blocks
}

// unmarked returns a block without its mark for the cache, which moves from request to request.
func unmarked(block json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, block) != nil {
		return block
	}
	return without(b.Bytes(), []string{"cache_control"})
}

func hasResult(blocks []json.RawMessage) bool {
	return slices.ContainsFunc(blocks, func(block json.RawMessage) bool {
		var b struct{ Type string }
		return json.Unmarshal(block, &b) == nil && b.Type == "tool_result"
	})
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // plain data
	return bytes.TrimSpace(b.Bytes())
}
