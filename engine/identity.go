package engine

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// identity is what a request says of the conversation it belongs to. It only narrows the scope in which the history is
// searched for.
type identity struct {
	Key    string // session key, empty if none
	Parent string // session key of the parent, empty if none
}

// maxKey bounds a session key, in bytes.
const maxKey = 256

// DefaultSessionHeaders are the headers that name a session, first found first.
func DefaultSessionHeaders() []string {
	return []string{
		"X-Dewpoint-Session", "thread-id", agentHeader, "x-session-id", "x-session-affinity", "session_id", "session-id",
		"x-claude-code-session-id", "x-opencode-session", "x-litellm-session-id", "x-grok-conv-id", "helicone-session-id",
		"x-openwebui-chat-id",
	}
}

// DefaultSessionFields are the body fields that name a session, after the headers.
func DefaultSessionFields() []string {
	return []string{"metadata.session_id", "session_id", "conversation.id", "metadata.user_id"}
}

// agentHeader names a sub-agent inside the session that agentSession names; only both together are a key.
const (
	agentHeader  = "x-claude-code-agent-id"
	agentSession = "x-claude-code-session-id"
)

// parentHeaders name the session that started this one.
func parentHeaders() []string { return []string{"x-parent-session-id", "x-codex-parent-thread-id"} }

// identify reads a request's identity. A key that is too long or not plain text counts as absent.
func (s *Settings) identify(header func(string) string, fields map[string]string) identity {
	found := s.identityKey(header, fields)
	if found.Key == "" || found.Parent != "" {
		return found
	}
	for _, name := range parentHeaders() {
		if v := header(name); usable(v) && v != found.Key {
			found.Parent = v
			break
		}
	}
	return found
}

func (s *Settings) identityKey(header func(string) string, fields map[string]string) identity {
	for _, name := range s.Headers {
		v := header(name)
		if !usable(v) {
			continue
		}
		if !strings.EqualFold(name, agentHeader) {
			return identity{Key: v}
		}
		if parent := header(agentSession); usable(parent) {
			return identity{Key: parent + "/" + v, Parent: parent}
		}
	}
	for _, path := range s.Fields {
		if v := fields[path]; usable(v) {
			return identity{Key: v}
		}
	}
	return identity{}
}

// usable reports whether v can be a session key: 1 to 256 bytes of printable ASCII.
func usable(v string) bool {
	if v == "" || len(v) > maxKey {
		return false
	}
	for i := range len(v) {
		if v[i] <= ' ' || v[i] > '~' {
			return false
		}
	}
	return true
}

// scope puts an identity in its tenant's scope.
func (t *Tenant) scope(secret session.Secret, credential string, key string) session.Scope {
	s := session.Scope{Tenant: t.Name, Key: key}
	if t.Anonymous {
		s.Credential = secret.Credential(credential)
	}
	return s
}
