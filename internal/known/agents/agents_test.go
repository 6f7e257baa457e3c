package agents

import (
	"slices"
	"strings"
	"testing"
)

func TestPrefixBound(t *testing.T) {
	for format, want := range map[string]bool{
		"anthropic-claude-v1": true, "openai-responses-v1": false, "azure-openai-responses-v1": false, "xai-responses-v1": false,
		"google-gemini-v1": false, "": true, "unknown": true, "someone-else-v7": true,
	} {
		if PrefixBound(format) != want {
			t.Errorf("%q: %t", format, !want)
		}
	}
}

// TestSessionTables checks the defaults and their order against the documentation.
func TestSessionTables(t *testing.T) {
	for want, got := range map[string][]string{
		"X-Dewpoint-Session, thread-id, x-claude-code-agent-id, x-session-id, x-session-affinity, session_id, session-id, " +
			"x-claude-code-session-id, x-opencode-session, x-litellm-session-id, x-grok-conv-id, helicone-session-id, " +
			"x-openwebui-chat-id": SessionHeaders(),
		"metadata.session_id, session_id, conversation.id, conversation, metadata.user_id": SessionFields(),
		"prompt_cache_key, promptCacheKey":                                                 CacheKeyFields(),
		"x-parent-session-id, x-codex-parent-thread-id":                                    ParentHeaders(),
	} {
		if strings.Join(got, ", ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	for _, never := range []string{"x-client-request-id", "user"} {
		if slices.Contains(SessionHeaders(), never) || slices.Contains(SessionFields(), never) {
			t.Errorf("%s names no session", never)
		}
	}
}

// TestRoutes checks that headers which determine the cache are copied to calls that extend a prompt, and credentials never are.
func TestRoutes(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Grok-Conv-Id": true, "x-session-affinity": true, "X-Multi-Turn-Session-Id": true, "X-Smg-Routing-Key": true, "Session_id": true,
		"User-Agent": false, "Cookie": false, "X-Request-Id": false,
	} {
		if Routes(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
	for _, name := range CredentialHeaders() {
		if Routes(name) {
			t.Errorf("%s is a credential", name)
		}
	}
}

// TestTables checks that a caller cannot modify a table for others.
func TestTables(t *testing.T) {
	for _, table := range []func() []string{
		SessionHeaders, SessionFields, CacheKeyFields, ParentHeaders, CredentialHeaders, InjectedTags,
	} {
		was := table()[0]
		table()[0] = "changed"
		if table()[0] != was {
			t.Errorf("the table that begins with %s is shared", was)
		}
	}
}

func TestBrowses(t *testing.T) {
	for tool, want := range map[string]bool{
		"browse": true, "browse_interactive": true, "browser_navigate": true, "BrowserUse": true, "mcp__playwright__click": true,
		"puppeteer_goto": true, "web_fetch": true, "WebFetch": true, "fetch_url": true, "fetch": true, "mcp__web__fetch": true,
		"web.fetch": true, "firecrawl_scrape": true, "computer": true, "take_screenshot": true, "computer_use_preview": true,
		"mcp__chrome-devtools__click": true, "read_url": true, "visit": true,
		"git_fetch": false, "prefetch": false, "run": false, "web_search": false, "read_file": false, "computer_name": false, "": false,
	} {
		if Browses(tool) != want {
			t.Errorf("%q: %v", tool, !want)
		}
	}
}
