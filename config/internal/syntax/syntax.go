// Package syntax defines how settings are spelled: the paths of keys, the keys of struct fields, and ${NAME}.
package syntax

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Join returns the path of a key in a section. A name that is not plain is quoted.
func Join(section, name string) string {
	if !Plain(name) {
		return section + fmt.Sprintf("[%q]", name)
	}
	if section == "" {
		return name
	}
	return section + "." + name
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Plain reports whether a name consists of ASCII letters, digits, - and _, and is not empty.
func Plain(name string) bool { return plain.MatchString(name) }

// Index returns the path of an element of a list.
func Index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// IsScalar reports whether a field of this type holds a single value, which one environment variable can set.
func IsScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	case reflect.Pointer:
		return IsScalar(t.Elem())
	}
	return false
}

// KeyOf returns the key of a struct field, or "" for a field that is not configured.
func KeyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// KeysOf lists the keys of a struct type.
func KeysOf(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		if key := KeyOf(f); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// reference is $${, ${NAME}, or a ${ that is neither.
var reference = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{`)

// Expand replaces ${NAME} by the variable's value, which is not expanded in turn, and $${ by ${. Any other dollar sign stands for itself. It
// reports whether a variable was used.
func Expand(text string, env map[string]string) (expanded string, used bool, err error) {
	expanded = reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "${}")
		value, set := env[name]
		switch {
		case found == "$${":
			return "${"
		case err != nil:
		case name == "":
			err = errors.New("contains a ${ that is not ${NAME}: name a variable, or write $${ for a literal ${")
		case !set:
			err = fmt.Errorf("names the environment variable %s, which is not set: set it, or write $${ for a literal ${", name)
		default:
			used = true
		}
		return value
	})
	if err != nil {
		return "", used, err
	}
	return expanded, used, nil
}

// Escape is the inverse of Expand.
func Escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// VariableName reports whether a name is a valid name of an environment variable.
func VariableName(name string) bool { return variableName.MatchString(name) }
