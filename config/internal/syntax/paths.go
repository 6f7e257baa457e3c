// Package syntax holds how settings are spelled: the paths of keys, the keys of struct fields, and ${NAME}.
package syntax

import (
	"fmt"
	"strings"
)

// Join returns the path of a key inside a section. A name that would not read as one key is quoted.
func Join(section, name string) string {
	if !Plain(name) {
		return section + fmt.Sprintf("[%q]", name)
	}
	if section == "" {
		return name
	}
	return section + "." + name
}

// Plain reports whether a name is made of letters, digits, - and _ only.
func Plain(name string) bool {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	}
	return name != "" && !strings.ContainsFunc(name, odd)
}

// Index returns the path of an element of a list.
func Index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
