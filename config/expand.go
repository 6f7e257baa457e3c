package config

import (
	"errors"
	"fmt"
	"strings"
)

// expandTree replaces ${NAME} in every string value of a file.
func expandTree(n *node, path string, env map[string]string, p *problems) {
	switch n.kind {
	case kindString:
		expandNode(n, path, env, p)
	case kindList:
		for i, item := range n.items {
			expandTree(item, index(path, i), env, p)
		}
	case kindTable:
		for _, f := range n.fields {
			expandTree(f.node, join(path, f.name), env, p)
		}
	}
}

func expandNode(n *node, path string, env map[string]string, p *problems) {
	text, used, err := expand(n.text, env)
	if err != nil {
		p.givenAt(path, n.origin)
		p.add(path, "%v", err)
		n.kind = kindBroken
		return
	}
	n.text = text
	if used {
		n.kind = kindText
	}
}

// expand replaces ${NAME} by the variable's value, which is not expanded again, and $${ by ${; any other dollar sign
// stands for itself. It says whether a variable was used.
func expand(text string, env map[string]string) (expanded string, used bool, err error) {
	var out strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, "$${"):
			out.WriteString("${")
			text = text[3:]
		case strings.HasPrefix(text, "${"):
			name, rest, closed := strings.Cut(text[2:], "}")
			if !closed || !variableName(name) {
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

// escape is the inverse of expand.
func escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }

func variableName(name string) bool {
	for i, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
