package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// withKey sends a key with each request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// tools connects the official client with a key.
func (r *running) tools(key string) *mcp.ClientSession {
	r.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(r.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://" + r.Addr() + proxy.ToolsPath, HTTPClient: &http.Client{Transport: withKey(key)}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool and returns its text.
func call(ctx context.Context, t *testing.T, s *mcp.ClientSession, name string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	var b strings.Builder
	for _, c := range result.Content {
		if c, is := c.(*mcp.TextContent); is {
			b.WriteString(c.Text)
		}
	}
	return b.String(), result.IsError
}

func TestAClientReadsItsOwnSessionsByTools(t *testing.T) {
	r := run(t, zap.NewNop(), func(c *config.Config) {
		c.Condenser = catalogue.Default(catalogue.TypeExcerpts)
		c.Condenser.MaxSize, c.Condenser.MinTokens, c.Condenser.KeepFirst, c.Condenser.Trigger = 10, 0, 1, "limits"
	})
	const mine, named = "Bearer sk-mine", "run-7"
	session := r.talk(13, "Authorization", mine).Header.Get("X-Dewpoint-Session")
	r.talk(13, "Authorization", mine, "X-Dewpoint-Session", named)
	s := r.tools("sk-mine")
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != 3 {
		t.Fatalf("%d tools, %v", len(listed.Tools), err)
	}
	for _, tool := range listed.Tools {
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s does not say that it only reads", tool.Name)
		}
	}
	for _, id := range []string{session, named} {
		if text, failed := call(t.Context(), t, s, "recall", map[string]any{"session": id, "event": "3"}); failed || !strings.Contains(text, "2 and so on") {
			t.Errorf("recall in %s: %v, %.200s", id, failed, text)
		}
		if text, failed := call(t.Context(), t, s, "recall", map[string]any{"session": id, "query": "4 and so on"}); failed || !strings.Contains(text, "event 5") {
			t.Errorf("recall in %s: %v, %.200s", id, failed, text)
		}
		if text, failed := call(t.Context(), t, s, "record", map[string]any{"session": id}); failed || len(text) < 50 || strings.HasPrefix(text, "There is no") {
			t.Errorf("record of %s: %v, %.200s", id, failed, text)
		}
		text, failed := call(t.Context(), t, s, "savings", map[string]any{"session": id})
		var saved struct {
			Condensations int   `json:"condensations"`
			Tokens        int64 `json:"tokens_not_sent"`
		}
		if err := json.Unmarshal([]byte(text), &saved); failed || err != nil || saved.Condensations != 1 {
			t.Errorf("savings of %s: %v, %v, %.200s", id, failed, err, text)
		}
	}
	for key, id := range map[string]string{"sk-other": session, "sk-another": named, "sk-mine": "no-such-session"} {
		if text, failed := call(t.Context(), t, r.tools(key), "record", map[string]any{"session": id}); !failed || !strings.Contains(text, "there is no session") {
			t.Errorf("%s reads %s: %.200s", key, id, text)
		}
	}
	if n := len(r.up.Requests()); n != 2 {
		t.Errorf("%d requests went upstream", n)
	}
}
