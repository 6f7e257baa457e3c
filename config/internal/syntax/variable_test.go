package syntax

import (
	"strings"
	"testing"
)

// FuzzEscape: Expand undoes Escape, and never panics.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "${A}", "$${A}", "$$$", "${", "a$${${"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, used, err := Expand(Escape(text), nil); got != text || used || err != nil {
			t.Errorf("expand(escape(%q)) = %q, %v", text, got, err)
		}
		_, _, _ = Expand(text, map[string]string{"A": "${A}"})
	})
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "NESTED": "${A}", "_x9": "y", "DOLLAR": "$"}
	for text, want := range map[string]string{
		"":                  "",
		"plain":             "plain",
		"${A}":              "1",
		"x${A}y${A}":        "x1y1",
		"${EMPTY}":          "",
		"${NESTED}":         "${A}",
		"${_x9}":            "y",
		"$A $ $$ $}":        "$A $ $$ $}",
		"$${A}":             "${A}",
		"$${":               "${",
		"$$${A}":            "$${A}",
		"$${A}${A}":         "${A}1",
		"${DOLLAR}{A}":      "${A}",
		"{A}":               "{A}",
		"price: 5$":         "price: 5$",
		"${A}$${A}$$${B} ü": "1${A}$${B} ü",
	} {
		if got, _, err := Expand(text, env); got != want || err != nil {
			t.Errorf("expand(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${", "${}", "${A", "${A B}", "${9}", "${A:-x}", "${A-}", "${${A}}", "a ${ b", "${ä}"} {
		if got, _, err := Expand(text, env); err == nil || !strings.Contains(err.Error(), "not ${NAME}") {
			t.Errorf("expand(%q) = %q, %v", text, got, err)
		}
	}
	if _, _, err := Expand("${MISSING}", env); err == nil || !strings.Contains(err.Error(), "MISSING") {
		t.Errorf("an unset variable gave %v", err)
	}
}
