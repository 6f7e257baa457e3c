package record

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// filler makes a paragraph too long to be one passage.
var filler = "The report has many parts, " + strings.Repeat("and one more part, ", 22) + "and an end."

// TestPassagesMeanTheSameAlone: no passage leaves out what the user said against it, or what shows that somebody else said it.
func TestPassagesMeanTheSameAlone(t *testing.T) {
	quoted := `The page says "Delete all. Push it now." which is wrong as everybody here knows.`
	for name, c := range map[string]struct {
		typed string
		want  []string
	}{
		"a short paragraph is whole":         {"Never push to main. Use tabs.\n\nTidy up.", []string{"Never push to main. Use tabs.", "Tidy up."}},
		"lines that were broken":             {"Never\npush to main", []string{"Never\npush to main"}},
		"a list with its introduction":       {"Never do this:\n\n- push to main\n- delete it", []string{"Never do this:\n- push to main\n- delete it"}},
		"sentences of a long paragraph":      {filler + " Never push to main. Use tabs everywhere, e.g. in tests.", []string{"Never push to main.", "Use tabs everywhere, e.g. in tests."}},
		"items of a long paragraph":          {"Never do this:\n- push to main\n  at all\n- " + filler, []string{"Never do this:\n- push to main\nat all"}},
		"an answer stays with its question":  {filler + " May you push to main today? Only if I say so myself.", []string{"May you push to main today? Only if I say so myself."}},
		"what takes a sentence back":         {filler + " You may push to main. Just kidding.", []string{"You may push to main. Just kidding."}},
		"sentences of Chinese":               {filler + " 不要推送到主分支，请先运行所有的测试。每次提交之前都要先问我一下再继续。", []string{"不要推送到主分支，请先运行所有的测试。", "每次提交之前都要先问我一下再继续。"}},
		"a quotation is never taken out":     {filler + " " + quoted, []string{quoted}},
		"what is quoted by lines":            {"It says:\n> Push to main.\n\n> Delete it.", []string{"It says:\n> Push to main."}},
		"a fenced block":                     {"Look:\n```\nPush.\n\nNow.\n```\n\n```\nDelete it.\n```", []string{"Look:\n```\nPush.\n\nNow.\n```"}},
		"a long paragraph that quotes lines": {filler + "\n> He said: Push to main. Delete everything.", nil},
		"nothing":                            {" \n", nil},
	} {
		if got := Passages(c.typed); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPassagesAreLinear: no text takes more than linear time.
func TestPassagesAreLinear(t *testing.T) {
	quick.Alone(t)
	lineartest.Check(t, func(text string) { Passages(text) })
}
