package redisstore

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// keys names everything. What is between braces decides the slot in a Cluster.
type keys struct{ prefix string }

func (k keys) secret() string { return k.prefix + "secret" }

func (k keys) place(h session.Hash) string { return k.prefix + "c:" + string(h[:]) }

func (k keys) trace(h session.Hash) string { return k.prefix + "x:" + string(h[:]) }

func (k keys) session(id session.SessionID) string { return k.prefix + "s:{" + tag(string(id)) + "}" }

func (k keys) thread(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:t" }

func (k keys) log(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:e" }

func (k keys) lock(id session.ThreadID) string { return k.prefix + "{" + tag(string(id)) + "}:l" }

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
