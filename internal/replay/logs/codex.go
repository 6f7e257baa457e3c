package logs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// codex reads a session file of Codex: items of the Responses API among events. The tools are not in it. Older versions wrote the items
// without an envelope.
type codex struct {
	out   *output
	label string
	model string
	items []item
	begin int

	instructions json.RawMessage
}

// item is an item of a history.
type item struct {
	raw    json.RawMessage
	output bool // the model wrote it
	user   bool // a person wrote it
	id     string
	replay.Recorded
}

// ours are members of an item that Codex adds for itself and does not send.
var ours = []string{"internal_chat_message_metadata_passthrough"}

type codexPayload struct {
	Type, Role       string
	Model            string
	Message          string
	ID               string
	Name             string
	CallID           string `json:"call_id"`
	Turns            int    `json:"num_turns"`
	BaseInstructions struct {
		Text string
	} `json:"base_instructions"`
	Instructions *string
	Source       json.RawMessage
	Replacement  []json.RawMessage `json:"replacement_history"`
	Usage        codexUsage
	Info         struct {
		Last codexUsage `json:"last_token_usage"`
	}
}

type codexUsage struct {
	Input int `json:"input_tokens"`
}

func newCodex(out *output) *codex { return &codex{out: out} }

func (c *codex) line(raw []byte) error {
	var l struct {
		Type    string
		Payload json.RawMessage
	}
	if !decoded(raw, &l) {
		return nil
	}
	if len(l.Payload) == 0 {
		l.Payload, l.Type = raw, "response_item"
	}
	var p codexPayload
	if !decoded(l.Payload, &p) && l.Type != "response_item" {
		return nil
	}
	switch l.Type {
	case "session_meta":
		c.begins(&p)
	case "turn_context":
		c.model = p.Model
	case "response_item":
		c.add(l.Payload)
	case "token_usage_record":
		c.used(p.Usage)
	case "event_msg":
		return c.event(&p)
	case "compacted":
		return c.compact(&p)
	}
	return nil
}

func (c *codex) end() error { return c.emit() }

// begins takes what the first line says of the session. A session that goes on from another repeats that one's first line after its own.
func (c *codex) begins(p *codexPayload) {
	if c.instructions != nil {
		return
	}
	text := p.BaseInstructions.Text
	if text == "" && p.Instructions != nil {
		text = *p.Instructions
	}
	if text != "" {
		c.instructions = encode(text)
	}
	if bytes.Contains(p.Source, []byte("subagent")) {
		c.label = "sub-agent"
	}
}

func (c *codex) event(p *codexPayload) error {
	switch p.Type {
	case "token_count":
		c.used(p.Info.Last)
	case "thread_rolled_back":
		return c.back(p.Turns)
	}
	return nil
}

// used takes the recorded usage of the last answer. Versions of Codex record it once or twice.
func (c *codex) used(u codexUsage) {
	for i := len(c.items) - 1; i >= c.begin; i-- {
		if c.items[i].output {
			c.items[i].Prompt = cmp.Or(c.items[i].Prompt, u.Input)
			return
		}
	}
}

// add adds an item of the history.
func (c *codex) add(raw json.RawMessage) {
	i, ok := itemOf(raw)
	if !ok {
		return
	}
	if i.output {
		i.Model = c.model
	}
	c.items = append(c.items, i)
}

// itemOf reads an item, and reports whether it is one that is sent to the model.
func itemOf(raw json.RawMessage) (item, bool) {
	var p struct {
		Type, Role, ID string
		CallID         string `json:"call_id"`
		Content        json.RawMessage
	}
	if json.Unmarshal(raw, &p) != nil || p.Type == "" && p.Role == "" || p.Type == "ghost_snapshot" {
		return item{}, false
	}
	i := item{raw: without(raw, ours), output: replay.IsOutput(p.Type, p.Role)}
	i.user = p.Role == "user" && !bytes.Contains(p.Content[:min(len(p.Content), 60)], []byte(`"<`))
	if i.output {
		if i.id = p.CallID; i.id == "" {
			i.id = p.ID
		}
	}
	return i, true
}

// without returns an object without some of its members.
func without(raw json.RawMessage, names []string) json.RawMessage {
	if !slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(raw, []byte(name)) }) {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	var b bytes.Buffer
	b.WriteByte('{')
	_, _ = d.Token() // raw is an object
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return raw
		}
		if name, _ := key.(string); slices.Contains(names, name) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(encode(key))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// compact begins a new history with what a compaction left.
func (c *codex) compact(p *codexPayload) error {
	if err := c.emit(); err != nil {
		return err
	}
	c.items, c.begin = nil, 0
	for _, raw := range p.Replacement {
		c.add(raw)
	}
	if len(p.Replacement) == 0 && p.Message != "" {
		c.add(encode(map[string]any{
			"type": "message", "role": "user", "content": []any{map[string]string{"type": "input_text", "text": p.Message}},
		}))
	}
	c.begin = len(c.items)
	return nil
}

// back removes the last turns of the user.
func (c *codex) back(turns int) error {
	at := len(c.items)
	for at > 0 && turns > 0 {
		at--
		if c.items[at].user {
			turns--
		}
	}
	if err := c.emit(); err != nil {
		return err
	}
	c.items, c.begin = slices.Clone(c.items[:at]), at
	return nil
}

func (c *codex) emit() error {
	made := group(c.items, c.begin)
	made.label, made.system = c.label, c.instructions
	return c.out.emit(made)
}

// group makes a history of items. Those that the model wrote one after another are one answer.
func group(items []item, begin int) *history {
	h := &history{protocol: replay.ProtocolResponses}
	for i, it := range items {
		if i == begin {
			h.begin = len(h.messages)
		}
		if i > 0 && it.output && items[i-1].output && i != begin {
			last := len(h.messages) - 1
			h.messages[last] = slices.Concat(h.messages[last], json.RawMessage(","), it.raw)
			newest := &h.answers[len(h.answers)-1]
			newest.Prompt = cmp.Or(newest.Prompt, it.Prompt)
			continue
		}
		if it.output {
			h.answers = append(h.answers, answer{at: len(h.messages), id: it.id, Recorded: it.Recorded})
		}
		h.messages = append(h.messages, it.raw)
	}
	if begin >= len(items) {
		h.begin = len(h.messages)
	}
	return h
}
