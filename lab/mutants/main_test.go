package main

import (
	"regexp"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse("\nsession lease.go TestHold\n- a \n- \tb\n+ c\n\n\nproxy ../engine/x.go\n- gone\n")
	want := []mutant{{"session", "lease.go", "TestHold", "a \n\tb", "c"}, {"proxy", "../engine/x.go", "", "gone", ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []string{"session\n- a", "session a.go b c\n- a", "- a", "session a.go\n+ a", "session a.go\n-a", "session a.go\n- a\nb", "session a.go\n- a\n* b"} {
		if got, err := parse(wrong); err == nil {
			t.Errorf("%q was accepted: %+v", wrong, got)
		}
	}
}

// TestEveryMutantApplies: the code that the list changes is still there. If a rule moved, its entry moves along.
func TestEveryMutantApplies(t *testing.T) {
	t.Chdir("../..")
	mutants, err := readList()
	if err != nil || len(mutants) == 0 {
		t.Fatalf("%d mutants, %v", len(mutants), err)
	}
	for _, m := range mutants {
		if _, err := m.apply(); err != nil {
			t.Error(err)
		}
		if _, err := regexp.Compile(m.tests); err != nil {
			t.Errorf("%s: %v", m.path(), err)
		}
	}
}
