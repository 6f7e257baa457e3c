package agents

import (
	"bytes"
	"slices"
	"strings"
)

// contexts are the beginnings of messages that Aider inserts into each request: the files that it works on (after the history) and its map of
// the repository (before the history).
var contexts = [...][]byte{ // bytes, so that MayBeContext does not allocate
	[]byte("I have *added these files"),
	[]byte("These files have been *added"),
	[]byte("These are some files we have been discussing"),
	[]byte("I am not sharing any files"),
	[]byte("I am not sharing the full contents"),
	[]byte("Don't try and edit any existing code without asking me"),
	[]byte("Here are some READ ONLY files"),
	[]byte("Here are summaries of some files present"),
	[]byte("I am working with you on code in a git repository"),
	[]byte("Here is the current content of the file"),
}

// contextReach is the length of the beginning of a message's JSON in which its text must begin, in bytes.
const contextReach = 200

// MayBeContext reports whether a user message may be one that the agent inserted, without decoding it.
func MayBeContext(raw []byte) bool {
	raw = raw[:min(len(raw), contextReach)]
	return slices.ContainsFunc(contexts[:], func(start []byte) bool { return bytes.Contains(raw, start) })
}

// Context reports whether a user message is one that the agent inserted. The agent also inserts a reply of the assistant to it, of a
// few words that no model wrote.
func Context(user, reply string) bool {
	const maxReply = 200 // bytes
	return len(reply) < maxReply && strings.HasPrefix(reply, "Ok") &&
		slices.ContainsFunc(contexts[:], func(start []byte) bool { return strings.HasPrefix(user, string(start)) })
}

// minReminder is the minimum length of a reminder, in bytes.
const minReminder = 120

// WithoutReminder returns the user's newest message without a reminder, which an agent such as Aider appends for one request only:
// the end of the system prompt, repeated. It reports whether the message has one.
func WithoutReminder(system, user string) (string, bool) {
	n := 0
	for n < len(system) && n < len(user) && system[len(system)-1-n] == user[len(user)-1-n] {
		n++
	}
	// The user's last words may be equal to those before the reminder in the system prompt, if only in their full stop.
	if line := strings.IndexByte(user[len(user)-n:], '\n'); line > 0 && n < len(user) && !strings.HasSuffix(user[:len(user)-n], "\n") {
		n -= line
	}
	rest := user[:len(user)-n]
	text := strings.TrimRight(rest, "\n")
	separate := len(text) < len(rest) || strings.HasPrefix(user[len(rest):], "\n")
	return text, n >= minReminder && separate && strings.TrimSpace(text) != ""
}
