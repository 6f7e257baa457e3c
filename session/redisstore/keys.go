package redisstore

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// keys builds the keys. In a Cluster the part in braces decides the slot.
type keys struct{ prefix string }

// secret returns the key of the secret, whose number is the version of all keys and values.
func (k keys) secret() string { return k.prefix + "secret:3" }

// formerSecret returns the key of the secret that the version before used.
func (k keys) formerSecret() string { return k.prefix + "secret:2" }

func (k keys) settings() string { return k.prefix + "settings" }

func (k keys) bucket(name string) string { return k.prefix + "b:" + name }

func (k keys) place(h session.Hash) string { return k.places() + codec.Short(h) }

// places returns what the keys of places begin with. The Short form of the chain hash follows.
func (k keys) places() string { return k.prefix + "c:" }

func (k keys) trace(h session.Hash) string { return k.traces() + codec.Short(h) }

// traces returns what the keys of traces begin with. The Short form of the trace follows.
func (k keys) traces() string { return k.prefix + "x:" }

// indexed returns the keys of places and traces.
func (k keys) indexed(places, traces []session.Hash) (names []string) {
	for _, h := range places {
		names = append(names, k.place(h))
	}
	for _, h := range traces {
		names = append(names, k.trace(h))
	}
	return names
}

func (k keys) session(id session.SessionID) string { return k.prefix + "s:{" + tag(string(id)) + "}" }

// unlisted returns the key of a session's threads that its record has no room for.
func (k keys) unlisted(id session.SessionID) string { return k.session(id) + "u" }

// journal returns what the keys of a session's journal begin with. The number of a block follows.
func (k keys) journal(id session.SessionID) string { return k.session(id) + "j" }

// names returns the key of the names that were written on a day and begin with a byte.
func (k keys) names(day uint16, first byte) string {
	return fmt.Sprintf("%sn:%d:%d", k.prefix, day, first%nameShards)
}

func (k keys) totals(period string) string { return k.prefix + "g:" + period }

func (k keys) outbox(tenant string) string { return k.prefix + "o:" + tenant }

func (k keys) experiment(name string) string { return k.prefix + "a:" + name }

func (k keys) thread(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:t" }

func (k keys) log(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:e" }

func (k keys) left(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:x" }

func (k keys) lock(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:l" }

// Records that are being deleted move to separate keys in the same slot, so that a session or thread can begin again under
// its old keys in the meantime.

func (k keys) doomedSession(id session.SessionID) string { return k.session(id) + "d" }

func (k keys) doomedLog(id session.ThreadID) string { return k.log(id) + "d" }

func (k keys) doomedLeft(id session.ThreadID) string { return k.left(id) + "d" }

// sessions returns a pattern for the keys of all sessions.
func (k keys) sessions() string { return k.pattern() + "s:{*}" }

// pattern returns a pattern for the prefix.
func (k keys) pattern() string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(k.prefix)
}

// sessionOf returns the id in a session's key.
func (k keys) sessionOf(key string) session.SessionID {
	return session.SessionID(untag(strings.TrimSuffix(strings.TrimPrefix(key, k.prefix+"s:{"), "}")))
}

var braces = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// tag escapes braces, which would end the hash tag early, and the empty id, because an empty tag does not count as one.
func tag(id string) string {
	if id == "" {
		return "%"
	}
	return braces.Replace(id)
}

func untag(t string) string {
	if t == "%" {
		return ""
	}
	return strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}").Replace(t)
}
