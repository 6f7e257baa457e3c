package redisstore

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// keys names everything. What is between braces decides the slot in a Cluster.
type keys struct{ prefix string }

func (k keys) secret() string { return k.prefix + "secret:2" }

// oldSecret is there where an earlier version keeps its records.
func (k keys) oldSecret() string { return k.prefix + "secret" }

func (k keys) settings() string { return k.prefix + "settings" }

func (k keys) bucket(name string) string { return k.prefix + "b:" + name }

func (k keys) place(h session.Hash) string { return k.prefix + "c:" + string(h[:]) }

func (k keys) trace(h session.Hash) string { return k.prefix + "x:" + string(h[:]) }

// indexed names places and traces.
func (k keys) indexed(places, traces []session.Hash) []string {
	names := make([]string, 0, len(places)+len(traces))
	for _, h := range places {
		names = append(names, k.place(h))
	}
	for _, h := range traces {
		names = append(names, k.trace(h))
	}
	return names
}

func (k keys) session(id session.SessionID) string { return k.prefix + "s:{" + tag(string(id)) + "}" }

// unlisted are the threads of a session that are too many for its record.
func (k keys) unlisted(id session.SessionID) string { return k.session(id) + "u" }

// outbox is what is to be told of a tenant's condensations.
func (k keys) outbox(tenant string) string { return k.prefix + "o:" + tenant }

// experiment is what the sessions of an experiment came to.
func (k keys) experiment(name string) string { return k.prefix + "a:" + name }

func (k keys) thread(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:t" }

func (k keys) log(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:e" }

func (k keys) left(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:x" }

func (k keys) lock(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:l" }

// What is being deleted has names of its own, in the same slot, so that it can begin anew under the old ones meanwhile.

func (k keys) doomedSession(id session.SessionID) string { return k.session(id) + "d" }

func (k keys) doomedLog(id session.ThreadID) string { return k.log(id) + "d" }

func (k keys) doomedLeft(id session.ThreadID) string { return k.left(id) + "d" }

// sessions is the pattern of all sessions' keys.
func (k keys) sessions() string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(k.prefix) + "s:{*}"
}

// sessionOf is the id in a session's key.
func (k keys) sessionOf(key string) session.SessionID {
	return session.SessionID(untag(strings.TrimSuffix(strings.TrimPrefix(key, k.prefix+"s:{"), "}")))
}

// tag escapes braces, which would end the tag early, and the empty id, which would make none.
func tag(id string) string {
	if id == "" {
		return "%"
	}
	if !strings.ContainsAny(id, "{}") && !strings.Contains(id, "%") {
		return id
	}
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(id)
}

func untag(t string) string {
	if t == "%" {
		return ""
	}
	return strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}").Replace(t)
}
