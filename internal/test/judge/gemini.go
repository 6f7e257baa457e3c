package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// contents is Gemini's generateContent. The translation keeps what the judge checks: roles, texts, calls, results and signatures. A result and the
// user message after it share one content. Calls of Gemini 2 have no ids.
type contents struct{}

// geminiContent is a content of the API.
type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string         `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Call      *geminiFunction `json:"functionCall,omitempty"`
	Response  *geminiFunction `json:"functionResponse,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`
}

// geminiFunction is a call or a result.
type geminiFunction struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Args     json.RawMessage   `json:"args,omitempty"`
	Response map[string]string `json:"response,omitempty"`
}

func (contents) Dialect() dialect.Dialect { return gemini.New(split.Options{}) }

func (contents) Path(p *player) string {
	path := "/models/" + p.o.Model
	if p.o.Stream {
		return path + ":streamGenerateContent?alt=sse"
	}
	return path + ":generateContent"
}

func (c contents) Body(p *player, history []json.RawMessage) []byte {
	system, all := c.contents(history, !strings.Contains(p.o.Model, "gemini-2"))
	body := map[string]any{"contents": all}
	if system != "" {
		body["systemInstruction"] = geminiContent{"user", []geminiPart{{Text: &system}}}
	}
	if len(p.run.Tools) > 0 {
		body["tools"] = []any{map[string]any{"functionDeclarations": c.declarations(p.run.Tools)}}
	}
	return marshal(body)
}

// declarations translates tools.
func (contents) declarations(tools json.RawMessage) (all []map[string]any) {
	var list []struct {
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	_ = json.Unmarshal(tools, &list) // a run that was loaded
	for _, t := range list {
		f := map[string]any{"name": t.Function.Name, "description": t.Function.Description}
		if len(t.Function.Parameters) > 0 {
			f["parametersJsonSchema"] = t.Function.Parameters
		}
		all = append(all, f)
	}
	return all
}

// contents translates a history.
func (c contents) contents(history []json.RawMessage, ids bool) (system string, all []geminiContent) {
	names := map[string]string{} // of calls, by their ids
	add := func(role string, parts ...geminiPart) {
		if n := len(all) - 1; n >= 0 && all[n].Role == role && role == "user" {
			all[n].Parts = append(all[n].Parts, parts...)
			return
		}
		all = append(all, geminiContent{role, parts})
	}
	var order []string // ids of the newest calls
	for _, m := range normalise(history) {
		switch {
		case isSystem(m.Role) && len(all) == 0:
			system += m.Content + "\n"
		case m.Role == "assistant":
			order = order[:0]
			for _, call := range m.ToolCalls {
				names[call.ID] = call.Function.Name
				order = append(order, call.ID)
			}
			if len(all) == 0 || all[len(all)-1].Role == "model" {
				add("user", textOfPart("(go on)"))
			}
			add("model", c.parts(m, ids)...)
		case m.Role == "tool":
			f := &geminiFunction{ID: m.Result, Name: names[m.Result], Response: map[string]string{"output": m.Content}}
			add("user", geminiPart{Response: f})
			sortResults(all[len(all)-1].Parts, order)
		default:
			add("user", textOfPart(orEmpty(m.Content)))
		}
	}
	if !ids {
		forgetIDs(all)
	}
	if n := len(all) - 1; n < 0 || all[n].Role == "model" {
		add("user", textOfPart("(go on)"))
	}
	return system, all
}

// sortResults orders the results at the end of a content as their calls are.
func sortResults(parts []geminiPart, order []string) {
	from := len(parts)
	for from > 0 && parts[from-1].Response != nil {
		from--
	}
	slices.SortStableFunc(parts[from:], func(a, b geminiPart) int {
		return slices.Index(order, a.Response.ID) - slices.Index(order, b.Response.ID)
	})
}

func forgetIDs(all []geminiContent) {
	for _, content := range all {
		for _, p := range content.Parts {
			for _, f := range []*geminiFunction{p.Call, p.Response} {
				if f != nil {
					f.ID = ""
				}
			}
		}
	}
}

func textOfPart(text string) geminiPart { return geminiPart{Text: &text} }

// parts returns the parts of an assistant message.
func (contents) parts(m chatMessage, ids bool) (parts []geminiPart) {
	if strings.TrimSpace(m.Content) != "" || len(m.ToolCalls) == 0 {
		parts = append(parts, textOfPart(orEmpty(m.Content)))
	}
	for _, call := range m.ToolCalls {
		var extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			}
		}
		_ = json.Unmarshal(call.Extra, &extra) // most calls have none
		f := &geminiFunction{ID: call.ID, Name: call.Function.Name, Args: inputOf(call.Function.Arguments)}
		parts = append(parts, geminiPart{Call: f, Signature: extra.Google.Signature})
	}
	return parts
}

// Answer implements protocol.
func (c contents) Answer(body []byte, streamed bool) (json.RawMessage, error) {
	pieces := [][]byte{body}
	if streamed {
		pieces = slices.Collect(eventsOf(body))
	}
	m := chatMessage{Role: "assistant"}
	seen := map[string]int{} // calls without an id, by name
	for _, raw := range pieces {
		var piece struct {
			Candidates []struct{ Content geminiContent }
		}
		if err := json.Unmarshal(raw, &piece); err != nil || len(piece.Candidates) != 1 {
			return nil, fmt.Errorf("read answer: %w: %.200s", err, raw)
		}
		for _, p := range piece.Candidates[0].Content.Parts {
			if p.Call != nil && p.Call.ID == "" { // the dialect numbers them like this
				p.Call.ID = fmt.Sprintf("functions.%s:%d", p.Call.Name, seen[p.Call.Name])
				seen[p.Call.Name]++
			}
			c.add(&m, p)
		}
	}
	if len(m.ToolCalls) == 0 {
		m.Content = orEmpty(m.Content)
	} else if strings.TrimSpace(m.Content) == "" { // clients do not send it back
		m.Content = ""
	}
	return marshal(m), nil
}

// add adds a part of an answer to a message.
func (contents) add(m *chatMessage, p geminiPart) {
	switch {
	case p.Thought:
	case p.Text != nil:
		m.Content += *p.Text
	case p.Call != nil:
		t := toolCall{ID: p.Call.ID, Type: "function"}
		t.Function.Name, t.Function.Arguments = p.Call.Name, string(p.Call.Args)
		if p.Signature != "" {
			t.Extra = marshal(map[string]any{"google": map[string]string{"thought_signature": p.Signature}})
		}
		m.ToolCalls = append(m.ToolCalls, t)
	}
}
