package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesAreFine checks every configuration in examples, with the variables that it names set.
func TestExamplesAreFine(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/dewpoint.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples are missing: %v, %v", files, err)
	}
	index, err := os.ReadFile("../../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, variable := range regexp.MustCompile(`\$\{(\w+)\}|env: (\w+)`).FindAllStringSubmatch(string(text), -1) {
				t.Setenv(variable[1]+variable[2], "value-of-"+variable[1]+variable[2])
			}
			code, out, errs := command(t, "check-config", file)
			if code != exitFine {
				t.Errorf("exit code %d: %s", code, errs)
			}
			if strings.Contains(out, "value-of-") {
				t.Error("a secret is shown")
			}
			if !strings.Contains(string(index), "("+name+")") {
				t.Error("examples/README.md does not name it")
			}
		})
	}
}

// TestComposeGivesEveryVariable holds the service to what its configuration names.
func TestComposeGivesEveryVariable(t *testing.T) {
	text, err := os.ReadFile("../../examples/compose/dewpoint.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compose, err := os.ReadFile("../../examples/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(string(compose), variable[1]+": ${"+variable[1]) {
			t.Errorf("compose.yaml does not pass %s", variable[1])
		}
	}
}
