// Package agents holds what is known of real agents and of the providers they speak to, as tables: the headers and fields that
// name a session, the texts of their side requests, the names of their tools, what they put into messages unasked, and what
// sealed reasoning is bound to. It decides nothing.
package agents

import "slices"

// SubAgent names a sub-agent inside the session that SubAgentSession names; only both together are a session's name.
const (
	SubAgent        = "x-claude-code-agent-id"
	SubAgentSession = "x-claude-code-session-id"
)

// sessionHeaders are the headers that name a session, first found first.
var sessionHeaders = [...]string{
	"X-Dewpoint-Session", "thread-id", SubAgent, "x-session-id", "x-session-affinity", "session_id", "session-id",
	"x-claude-code-session-id", "x-opencode-session", "x-litellm-session-id", "x-grok-conv-id", "helicone-session-id",
	"x-openwebui-chat-id",
}

// SessionHeaders are the headers that name a session, first found first.
func SessionHeaders() []string { return slices.Clone(sessionHeaders[:]) }

// SessionFields are the body fields that name a session, after the headers. Claude Code's metadata.user_id is one where it is
// JSON that holds a session_id.
func SessionFields() []string {
	return []string{"metadata.session_id", "session_id", "conversation.id", "metadata.user_id"}
}

// CacheKeyFields are body fields that some agents name a session with, and others do not.
func CacheKeyFields() []string { return []string{"prompt_cache_key", "promptCacheKey"} }

// ParentHeaders name the session that started this one.
func ParentHeaders() []string { return []string{"x-parent-session-id", "x-codex-parent-thread-id"} }

// CredentialHeaders are the headers that carry a client's key. A request's credential is all of them, and of CredentialQuery,
// together.
func CredentialHeaders() []string {
	return []string{"Authorization", "api-key", "x-api-key", "x-goog-api-key"}
}

// CredentialQuery are the parameters of a URL that carry a client's key.
func CredentialQuery() []string { return []string{"key"} }
