// Package agents holds facts about real agents and their providers, as tables: the headers and fields that name a session, the
// texts of side requests, the names of tools, the elements that agents inject into messages, and the bindings of sealed
// reasoning. It makes no decisions.
package agents

import "slices"

// SubAgent is the header that names a sub-agent within the session named by SubAgentSession. Only both together identify a session.
const (
	SubAgent        = "x-claude-code-agent-id"
	SubAgentSession = "x-claude-code-session-id"
)

// sessionHeaders are the headers that name a session, in order of precedence.
var sessionHeaders = [...]string{
	"X-Dewpoint-Session", "thread-id", SubAgent, "x-session-id", "x-session-affinity", "session_id", "session-id",
	"x-claude-code-session-id", "x-opencode-session", "x-litellm-session-id", "x-grok-conv-id", "helicone-session-id",
	"x-openwebui-chat-id",
}

// SessionHeaders returns the headers that name a session, in order of precedence.
func SessionHeaders() []string { return slices.Clone(sessionHeaders[:]) }

// SessionFields returns the body fields that name a session if no header does. Claude Code's metadata.user_id counts only if it is
// JSON with a session_id.
func SessionFields() []string {
	return []string{"metadata.session_id", "session_id", "conversation.id", "conversation", "metadata.user_id"}
}

// CacheKeyFields returns body fields that name a session for some agents, but not for others.
func CacheKeyFields() []string { return []string{"prompt_cache_key", "promptCacheKey"} }

// ParentHeaders returns the headers that name the session that started this one.
func ParentHeaders() []string { return []string{"x-parent-session-id", "x-codex-parent-thread-id"} }
