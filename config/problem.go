package config

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with a configuration. Its message never holds a secret, nor a value that came from the
// environment.
type Problem struct {
	Key     string // the full path, as tenants[1].condenser.keep_first; a file's name when it cannot be read
	Message string // what is wrong: what to do
	Origin  string // where the value was given: "line 7", "DEWPOINT_LISTEN", "--listen"; empty when not known
}

// Error returns "key: what is wrong: what to do (origin)".
func (p Problem) Error() string {
	if p.Origin == "" {
		return p.Key + ": " + p.Message
	}
	return p.Key + ": " + p.Message + " (" + p.Origin + ")"
}

// Problems is everything that is wrong with a configuration, in the order in which it was found. As an error it is that
// of Load and Validate: find it with errors.As.
type Problems []Problem

// Error returns the problems, a line each.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Add appends a problem. The message says what is wrong and what to do.
func (p *Problems) Add(key, format string, args ...any) {
	*p = append(*p, Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

// Err returns the problems as an error, or nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
