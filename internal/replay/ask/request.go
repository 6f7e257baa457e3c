package ask

import (
	"encoding/json"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// message is a message of Chat Completions.
type message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Arguments   string          `json:"arguments,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// request returns the body of a question: a history of any protocol as Chat Completions.
func request(model string, history []session.Content, tools json.RawMessage) []byte {
	messages := messagesOf(history)
	question := struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		Tools     []tool    `json:"tools,omitempty"`
		MaxTokens int       `json:"max_tokens,omitempty"`

		MaxCompletionTokens int `json:"max_completion_tokens,omitempty"`
	}{Model: model, Messages: messages, Tools: toolsOf(tools, messages)}
	if agents.RefusesMaxTokens(model) { // it reasons first
		question.MaxCompletionTokens = maxReasoned
	} else {
		question.MaxTokens = maxAnswer
	}
	body, _ := json.Marshal(question) // strings and numbers: cannot fail
	return body
}

// messagesOf translates a history. Messages of the model that follow one another are joined, as Chat Completions has it. Files and images are
// left out.
func messagesOf(history []session.Content) (all []message) {
	for _, c := range history {
		m := message{Role: c.Role, Content: c.Text, ToolCallID: c.Result}
		switch {
		case c.Result != "":
			m.Role = "tool"
		case c.Role == "developer":
			m.Role = "system"
		}
		for _, k := range c.Calls {
			m.ToolCalls = append(m.ToolCalls, call{ID: k.ID, Type: "function", Function: function{Name: k.Name, Arguments: k.Arguments}})
		}
		if n := len(all); n > 0 && m.Role == "assistant" && all[n-1].Role == "assistant" {
			last := &all[n-1]
			last.ToolCalls = append(last.ToolCalls, m.ToolCalls...)
			if m.Content != "" {
				last.Content += "\n" + m.Content
			}
			continue
		}
		all = append(all, m)
	}
	return all
}

// toolsOf returns a run's tools in the form of Chat Completions. Of a run without any, those that it calls are declared without parameters.
func toolsOf(raw json.RawMessage, messages []message) (all []tool) {
	var given []struct {
		Name        string
		Description string
		Parameters  json.RawMessage
		InputSchema json.RawMessage `json:"input_schema"`
		Function    function
	}
	_ = json.Unmarshal(raw, &given) // none: they are taken from the calls
	for _, g := range given {
		f := g.Function
		if f.Name == "" {
			f = function{Name: g.Name, Description: g.Description, Parameters: g.Parameters}
			if len(g.InputSchema) > 0 {
				f.Parameters = g.InputSchema
			}
		}
		all = append(all, tool{"function", f})
	}
	if len(all) > 0 {
		return all
	}
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			if !slices.ContainsFunc(all, func(t tool) bool { return t.Function.Name == c.Function.Name }) {
				all = append(all, tool{"function", function{Name: c.Function.Name, Parameters: json.RawMessage(`{"type":"object"}`)}})
			}
		}
	}
	return all
}
