package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestTrial: tests that fail have noticed, tests that do not end or do not exist prove nothing.
func TestTrial(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := "package a\n\nimport \"testing\"\n\nfunc TestPasses(*testing.T) {}\nfunc TestFails(t *testing.T) { t.Fail() }\nfunc TestHangs(*testing.T) { select {} }\n"
	for name, text := range map[string]string{"go.mod": "module a\n", "a_test.go": tests} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := func(pattern string, timeout time.Duration, want bool, says string) {
		t.Helper()
		passed, out, err := test(t.Context(), trial{pkg: ".", tests: pattern, timeout: timeout})
		if passed != want || (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: passed %t, %v, want %t, %q\n%s", pattern, passed, err, want, says, out)
		}
	}
	f("TestPasses", 0, true, "")
	f("TestFails|TestPasses", 0, false, "")
	f("TestHangs", time.Second, false, "TIMED OUT after 1s")
	f("TestNothing", 0, false, "no test matches TestNothing")
}
