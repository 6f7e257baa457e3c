package redisstore

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// keys builds the keys. In a Cluster the part in braces decides the slot: the records of a group are in one slot, with their logs and locks.
type keys struct{ prefix string }

// formerSecrets returns the keys of the secrets that earlier versions used.
func (k keys) formerSecrets() []string { return []string{k.prefix + "secret:2", k.prefix + "secret:3"} }

// former returns a pattern for the keys of places and traces of earlier versions, which are almost all of their keys.
func (k keys) former() string { return k.pattern() + "[cx]:*" }

func (k keys) bucket(name string) string { return k.prefix + "l:" + name }

func (k keys) record(r store.Key) string {
	key := k.prefix + string(r.Kind) + ":{" + tag(r.Group) + "}"
	if r.Name != "" {
		key += ":" + r.Name
	}
	return key
}

func (k keys) log(r store.Key, log byte) string { return k.record(r) + "/" + string(log) }

func (k keys) lock(r store.Key) string { return k.record(r) + "/lock" }

// all returns the keys of a record: its own, and those of its logs.
func (k keys) all(r store.Key) []string {
	names := []string{k.record(r)}
	for i := range len(r.Logs) {
		names = append(names, k.log(r, r.Logs[i]))
	}
	return names
}

func (k keys) entry(e store.EntryKey) string { return k.prefix + string(e[:1]) + ":" + string(e[1:]) }

func (k keys) entries(all []store.EntryKey) []string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = k.entry(e)
	}
	return names
}

// records returns a pattern for the keys of all records of a kind whose names are empty.
func (k keys) records(kind byte) string { return k.pattern() + string(kind) + ":{*}" }

// pattern returns a pattern for the prefix.
func (k keys) pattern() string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(k.prefix)
}

// group returns the group in the key of a record whose name is empty.
func (k keys) group(key string, kind byte) string {
	return untag(strings.TrimSuffix(strings.TrimPrefix(key, k.prefix+string(kind)+":{"), "}"))
}

var braces = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// tag escapes braces, which would end the hash tag early, and the empty group, because an empty tag does not count as one.
func tag(group string) string {
	if group == "" {
		return "%"
	}
	return braces.Replace(group)
}

func untag(t string) string {
	if t == "%" {
		return ""
	}
	return strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}").Replace(t)
}
