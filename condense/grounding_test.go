package condense

import (
	"errors"
	"strings"
	"testing"
)

// TestNoLineOfAnExampleIsAFact: with all placeholders taken out, an example has nothing left but names of sections and a few words.
func TestNoLineOfAnExampleIsAFact(t *testing.T) {
	for focus, text := range focusTexts {
		_, example, _ := strings.Cut(text.example, "placeholders:\n")
		if example == "" {
			t.Errorf("%s: no example", focus)
		}
		for example != "" {
			before, rest, opened := strings.Cut(example, "<")
			_, after, _ := strings.Cut(rest, ">")
			if strings.ContainsAny(before, "0123456789./@#") {
				t.Errorf("%s: %q", focus, before)
			}
			for _, word := range wordsOf(before) {
				switch upper := strings.ToUpper(word); {
				case !opened, strings.Contains(text.sections, upper+":"):
				case word != "pass" && word != "fails" && word != "since" && word != "answered" && word != "open":
					t.Errorf("%s: %q", focus, word)
				}
			}
			example = after
		}
	}
}

// TestRepeatedInstructionsAreNoRecord: whatever the marks around them and wherever their lines break.
func TestRepeatedInstructionsAreNoRecord(t *testing.T) {
	instructions := prose{}.system(FocusCoding) + FocusCoding.example() + "\n" + prose{}.ask(100)
	for text, want := range map[string]bool{
		"NEXT_STEP: <action>, <path>:<line>":                                           true,
		"USER_CONTEXT: port it\n- **NEXT_STEP**: what comes next.":                     true,
		"DECISIONS: none\nCODE_STATE: \"file paths, functions and their signatures\"":  true,
		"Keep the outcomes of commands\nand tools, and drop what else they printed":    true,
		"USER_CONTEXT: which of the files\nNEXT_STEP: open the first file":             false,
		"TASK_TRACKING:\nTESTS: 41 pass\nDEPS: none\n\nNEXT_STEP: what the user wants": false,
	} {
		_, _, err := grounded(text, instructions, text)
		bad, _ := errors.AsType[*SummaryError](err)
		if got := bad != nil && bad.Kind == FaultMalformed; got != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLinesOfTheInstructionsAreStruckOut: what a model wrote besides stays.
func TestLinesOfTheInstructionsAreStruckOut(t *testing.T) {
	instructions := prose{}.system(FocusCoding) + "\n" + prose{}.ask(100)
	const own = "USER_CONTEXT: port the parcel tracker to Go.\nPENDING: the tests of its queue still fail."
	text, _, err := grounded("USER_CONTEXT: port the parcel tracker to Go.\n- **NEXT_STEP**: what comes next.\nPENDING: the tests of its queue still fail.", instructions, own)
	if err != nil || text != own {
		t.Errorf("%q, %v", text, err)
	}
}

// TestGrounded: lines that name something else are struck and counted, and too many of them are no record.
func TestGrounded(t *testing.T) {
	text, g, err := grounded("TESTS: TestRead passes\nNEXT_STEP: auth/token.go:88", "", "ok TestRead")
	if err != nil || text != "TESTS: TestRead passes" || g.String() != "1 of 2" {
		t.Errorf("%q, %v, %v", text, g, err)
	}
	_, g, err = grounded("TESTS: TestRead passes\nNEXT_STEP: auth/token.go:88\nDEPS: left-pad2", "", "nothing")
	if bad, _ := errors.AsType[*SummaryError](err); bad == nil || bad.Kind != FaultUngrounded || g.Grounded != 0 {
		t.Errorf("%v, %v", g, err)
	}
	_, _, err = grounded("NEXT_STEP: auth/token.go:88", "", "nothing")
	if bad, _ := errors.AsType[*SummaryError](err); bad == nil || bad.Kind != FaultUngrounded {
		t.Errorf("a record without any line: %v", err)
	}
}
