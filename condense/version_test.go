package condense

import (
	"os"
	"strings"
	"testing"
)

// TestPromptVersions checks that each prompt in use is listed in testdata/prompts.list. A changed prompt gets a new line
// there; lines are never removed.
func TestPromptVersions(t *testing.T) {
	known, err := os.ReadFile("testdata/prompts.list")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, r Request) {
		if line := promptVersion(r) + " " + name + "\n"; !strings.Contains(string(known), line) {
			t.Errorf("add to testdata/prompts.list: %s", line)
		}
	}
	for _, focus := range []Focus{FocusConversation, FocusCoding, FocusResearch} {
		for name, f := range map[string]form{"llm": prose{}, "structured_summary": structured{}} {
			r := Request{System: f.system(focus)}
			f.shape(&r)
			check(name+" "+string(focus), r)
			r.System += instructionsEvents
			check(name+" "+string(focus)+" and event ids", r)
			if name == "llm" {
				check(name+" "+string(focus)+" with an example", Request{System: f.system(focus) + focus.example()})
				check(name+" "+string(focus)+" with an example and event ids", Request{System: f.system(focus) + focus.example() + instructionsEvents})
				check(name+" "+string(focus)+" behind the conversation", Request{System: proseSystem(reuseOpen, focus)})
			}
		}
	}
	check("llm_attention", Request{System: attentionInstructions, Format: &Schema{JSON: []byte(rankingSchema)}})
}
