package agents

import (
	"bytes"
	"slices"
	"strings"
)

// contexts are how Aider begins the messages that it puts between the others anew for each request: the files that it works on, behind the
// history, and its map of the repository, before it.
var contexts = [...][]byte{ // bytes, so that nothing is allocated for a message
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

// contextReach is where such a message has begun, in bytes of its JSON.
const contextReach = 200

// MayBeContext reports whether a message of the user's may be such, without decoding it.
func MayBeContext(raw []byte) bool {
	raw = raw[:min(len(raw), contextReach)]
	return slices.ContainsFunc(contexts[:], func(start []byte) bool { return bytes.Contains(raw, start) })
}

// Context reports whether a message of the user's is such: the agent has the assistant answer it with a few words that no model wrote.
func Context(user, reply string) bool {
	const words = 200
	return len(reply) < words && strings.HasPrefix(reply, "Ok") &&
		slices.ContainsFunc(contexts[:], func(start []byte) bool { return strings.HasPrefix(user, string(start)) })
}

// reminderLength is how long a reminder is at least, in bytes.
const reminderLength = 120

// WithoutReminder is the user's newest message without what an agent puts behind it for this request alone: the end of the system prompt
// once more, as Aider does. It reports whether there is any.
func WithoutReminder(system, user string) (string, bool) {
	n := 0
	for n < len(system) && n < len(user) && system[len(system)-1-n] == user[len(user)-1-n] {
		n++
	}
	rest := user[:len(user)-n]
	text := strings.TrimRight(rest, "\n")
	apart := len(text) < len(rest) || strings.HasPrefix(user[len(rest):], "\n")
	return text, n >= reminderLength && apart && strings.TrimSpace(text) != ""
}
