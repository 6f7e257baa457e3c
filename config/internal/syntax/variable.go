package syntax

import (
	"errors"
	"fmt"
	"strings"
)

// Expand replaces ${NAME} by the variable's value, which is not expanded again, and $${ by ${; any other dollar sign
// stands for itself. It reports whether a variable was used.
func Expand(text string, env map[string]string) (expanded string, used bool, err error) {
	var out strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, "$${"):
			out.WriteString("${")
			text = text[3:]
		case strings.HasPrefix(text, "${"):
			name, rest, closed := strings.Cut(text[2:], "}")
			if !closed || !VariableName(name) {
				return "", used, errors.New("holds a ${ that is not ${NAME}: name a variable, or write $${ for the characters themselves")
			}
			value, set := env[name]
			if !set {
				return "", used, fmt.Errorf("names the environment variable %s, which is not set: set it, or write $${ for the characters themselves", name)
			}
			out.WriteString(value)
			text, used = rest, true
		default:
			out.WriteByte(text[0])
			text = text[1:]
		}
	}
	return out.String(), used, nil
}

// Escape is the inverse of Expand.
func Escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// VariableName reports whether a name can be that of an environment variable.
func VariableName(name string) bool {
	for i, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
