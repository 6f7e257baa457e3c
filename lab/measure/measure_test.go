package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

const (
	measuredBegin = "<!-- measured: begin -->"
	measuredEnd   = "<!-- measured: end -->"
)

func TestCosts(t *testing.T) {
	tests := map[string]struct {
		p    price
		use  use
		want float64
	}{
		"nothing cached":       {price{read: 0.1, write: 1.25}, use{forwarded: 100}, 125},
		"mostly cached":        {price{read: 0.1, write: 1.25}, use{forwarded: 100, cached: 80}, 8 + 25},
		"what agents write":    {price{read: 0.1, write: 1.25}, use{forwarded: 100, written: 10}, 125 + 50},
		"the summariser's own": {price{read: 1, write: 1, summariser: 0.5}, use{forwarded: 100, cached: 80, own: 50, answers: 1}, 100 + 25 + 2500},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.p.cost(test.use); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestSavings(t *testing.T) {
	p := price{read: 1, write: 1, summariser: 0.1}
	for want, u := range map[string]use{
		"+25.0%": {forwarded: 75}, "+0.0%": {forwarded: 100}, "-10.0%": {forwarded: 100, own: 100},
	} {
		if got := p.saving(u, use{forwarded: 100}); got != want {
			t.Errorf("%+v saves %s, want %s", u, got, want)
		}
	}
	if got := p.saving(use{}, use{}); got != "–" {
		t.Errorf("of nothing: %s", got)
	}
}

func TestSplice(t *testing.T) {
	doc := "# Title\n" + measuredBegin + "\nold\n" + measuredEnd + "\nafter\n"
	got, err := splice(doc, measured, "\nnew\n")
	if err != nil || got != "# Title\n"+measuredBegin+"\n\nnew\n\n"+measuredEnd+"\nafter\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if again, err := splice(got, measured, "new"); err != nil || again != got {
		t.Errorf("a second time gives %q, %v", again, err)
	}
	for _, bad := range []string{"# Title\n", measuredEnd + measuredBegin, measuredBegin} {
		if _, err := splice(bad, measured, "new"); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestPlansAreValid: every row is what a configuration may say.
func TestPlansAreValid(t *testing.T) {
	all := plans(32000)
	if len(all) < 4 || all[0].condenser.Type != catalogue.TypeNoop {
		t.Fatalf("%d rows, the first is %q", len(all), all[0].name)
	}
	for _, p := range all {
		cfg := config.Default()
		cfg.LLMs["cheap"] = config.LLM{Model: "gpt-4o-mini"}
		cfg.Condenser = p.condenser
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

// written writes a run of n exchanges to a file of its own.
func written(t *testing.T, n int) string {
	t.Helper()
	messages := []any{
		map[string]any{"role": "system", "content": "You are an agent."},
		map[string]any{"role": "user", "content": "Fix the bug in main.go, please."},
	}
	for i := range n {
		id := fmt.Sprintf("call_%012d", i)
		messages = append(messages, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]string{"name": "run", "arguments": fmt.Sprintf(`{"command":"cat src/mod%d.go"}`, i/2)},
		}}}, map[string]any{"role": "tool", "tool_call_id": id, "content": fmt.Sprintf("src/mod%d.go sets value_%d\n", i, i) +
			strings.Repeat("the output goes on and on for a while\n", 40)})
	}
	body, err := json.Marshal(map[string]any{
		"id": "run", "messages": messages, "final_response": map[string]any{"role": "assistant", "content": "Fixed src/mod0.go and value_1."},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCostCommand(t *testing.T) {
	quick.Skip(t)
	doc := filepath.Join(t.TempDir(), "cost.md")
	if err := os.WriteFile(doc, []byte(measuredBegin+measuredEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"cost", "-only", "llm", "-max-tokens", "6000", "-fixed", "0", "-doc", doc, written(t, 30)}
	if err := run(context.Background(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(got), "\n| ") != 2*(1+2) || !strings.Contains(string(got), "31 model calls") {
		t.Errorf("want two rows:\n%s", got)
	}
	first, byLength, _ := strings.Cut(string(got), "###")
	if !strings.Contains(byLength, "| no condensing | – | +0.0% | – | +0.0% |") {
		t.Errorf("no table by length:\n%s", byLength)
	}
	for line := range strings.Lines(first) {
		cells := strings.Split(line, " | ")
		switch cells[0] {
		case "| no condensing":
			if cells[1] != "0" || cells[4] != "0" || cells[6] != "+0.0%" {
				t.Errorf("%s", line)
			}
		case "| llm":
			if cells[1] != "0" || cells[4] == "0" || !strings.HasPrefix(cells[6], "+") || cells[6] == "+0.0%" {
				t.Errorf("nothing was condensed: %s", line)
			}
		}
	}
}

func TestRetentionCommand(t *testing.T) {
	var out bytes.Buffer
	err := run(context.Background(), []string{"retention", "-minimum", "2000", "-moments", "3", written(t, 60)}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| *oracle* |") || !strings.Contains(out.String(), "| `llm` |") {
		t.Errorf("no table:\n%s", out.String())
	}
}

// TestSavedCommand: what is condensed costs less and keeps less, and what does nothing costs and keeps all.
func TestSavedCommand(t *testing.T) {
	quick.Skip(t)
	doc := filepath.Join(t.TempDir(), "cost.md")
	if err := os.WriteFile(doc, []byte(measuredBegin+"\nkept\n"+measuredEnd+"\n<!-- saved: begin --><!-- saved: end -->"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), []string{"saved", "-doc", doc, written(t, 120)}, io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "\nkept\n") || !strings.Contains(string(got), "| nothing | – | – | – | – | +0.0% | 100.0 | +0.0% |") {
		t.Errorf("%s", got)
	}
	for line := range strings.Lines(string(got)) {
		cells := strings.Split(line, " | ")
		if cells[0] == "| `excerpts`, when the default would" && (!strings.HasPrefix(cells[5], "+") || cells[5] == "+0.0%") {
			t.Errorf("nothing was saved: %s", line)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"speed"}, {"cost"}, {"retention", "/nowhere"}, {"cost", "-x"}, {"bench", "-only", "cells,speed"}, {"bench", "-x"}} {
		if err := run(context.Background(), args, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	if err := refused([]row{{name: "x", refused: []error{errors.New("bad")}}}); err == nil {
		t.Error("a refusal is no failure")
	}
}

// TestFurnished: what every request repeats is as large as in use, whatever was recorded of it.
func TestFurnished(t *testing.T) {
	count := func(text []byte) int { return len(strings.Fields(string(text))) }
	system := json.RawMessage(`{"role":"system","content":"` + strings.Repeat("a b ", 50) + `"}`)
	for name, c := range map[string]struct {
		run  replay.Run
		want int
	}{
		"none recorded":   {replay.Run{Messages: []json.RawMessage{json.RawMessage(`{"role":"user"}`)}}, 500},
		"a system prompt": {replay.Run{Messages: []json.RawMessage{system}}, 400},
		"tools recorded":  {replay.Run{Tools: json.RawMessage(`[{"type":"function"}]`)}, 1},
	} {
		got, err := furnished(c.run, 500, count)
		if n := count(got.Tools); err != nil || n < c.want || n > c.want+5 {
			t.Errorf("%s: %d tokens of tools, want about %d; %v", name, n, c.want, err)
		}
	}
}
