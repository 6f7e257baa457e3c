package engine

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/agents"
)

// identity is what a request says of the conversation it belongs to. It only narrows the scope in which the history is
// searched for.
type identity struct {
	Key    string // session key, empty if none
	Parent string // session key of the parent, empty if none
}

// maxKey bounds a session key, in bytes.
const maxKey = 256

// identify reads a request's identity. A key that is too long or not plain text counts as absent.
func (s *Settings) identify(header func(string) string, fields map[string]string) identity {
	found := s.identityKey(header, fields)
	if found.Key == "" || found.Parent != "" {
		return found
	}
	for _, name := range agents.ParentHeaders() {
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
		if !strings.EqualFold(name, agents.SubAgent) {
			return identity{Key: v}
		}
		if parent := header(agents.SubAgentSession); usable(parent) {
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
	return v != "" && len(v) <= maxKey && strings.IndexFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// Credential reads the keys that a client sent: the first, which finds its tenant, and all of them together, which tell clients
// apart. A gateway may give each of its users the same bearer token, and a key of his own in another header.
func Credential(header func(string) string, query string) (first, all string) {
	add := func(name, key string) {
		if key == "" {
			return
		}
		if first == "" {
			first = key
		}
		all += fmt.Sprintf("%s %d %s\n", name, len(key), key)
	}
	for _, name := range agents.CredentialHeaders() {
		key := header(name)
		if scheme, token, ok := strings.Cut(key, " "); ok && strings.EqualFold(scheme, "Bearer") {
			key = strings.TrimSpace(token)
		}
		add(name, key)
	}
	values, _ := url.ParseQuery(query) // of one that is malformed, what can be read
	for _, name := range agents.CredentialQuery() {
		add("?"+name, values.Get(name))
	}
	return first, all
}
