package config

import (
	"fmt"
	"strings"
)

// Problem is one error in a configuration, or a warning about it. Its message never contains a secret, or a value from the environment.
type Problem struct {
	Key     string // the full path, such as tenants[1].condenser.keep_first, or the name of a file that cannot be read
	Message string // what is wrong, a colon, and what to do
	Origin  string // where the value was set, such as "line 7", "DEWPOINT_LISTEN" or "--listen"; empty: not known
}

// Error returns the key, the message and the origin in one line.
func (p Problem) Error() string {
	if p.Origin == "" {
		return p.Key + ": " + p.Message
	}
	return p.Key + ": " + p.Message + " (" + p.Origin + ")"
}

// Problems is the error that Load and Validate return: all problems of a configuration, in the order in which they were found.
type Problems []Problem

// Error returns the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Add appends a problem. The formatted message says what is wrong and what to do.
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
