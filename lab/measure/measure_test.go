package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

const (
	measuredBegin = "<!-- measured: begin -->"
	measuredEnd   = "<!-- measured: end -->"
)

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

// TestCostCommand: the tables say what a long run saves, and that the proxy's own accounts agree with upstream in every protocol.
func TestCostCommand(t *testing.T) {
	quick.Skip(t)
	doc := filepath.Join(t.TempDir(), "cost.md")
	if err := os.WriteFile(doc, []byte(measuredBegin+measuredEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), []string{"cost", "-doc", doc, written(t, 120)}, io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "1 runs with 121 model calls") {
		t.Errorf("%s", got)
	}
	rows := 0
	for line := range strings.Lines(string(got)) {
		cells := strings.Split(line, " | ")
		var saved string
		switch {
		case strings.HasPrefix(cells[0], "| the default") || strings.HasPrefix(cells[0], "| `llm`"):
			saved = cells[1]
		case strings.HasPrefix(line, "| chat") || strings.HasPrefix(line, "| messages") || strings.HasPrefix(line, "| responses"):
			saved = cells[4]
		default:
			continue
		}
		rows++
		if saved == "0.0%" || strings.HasPrefix(saved, "-") {
			t.Errorf("nothing is saved: %s", line)
		}
	}
	if want := 3 + 3*len(tariffs()); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
}

// TestAudit: a bill of the proxy's that is not upstream's is an error, and that of a run that was not played is none.
func TestAudit(t *testing.T) {
	r := replay.Report{With: replay.Bill{Cost: replay.Money{USD: 1.25}}, Own: replay.Bill{Cost: replay.Money{USD: 0.25}}}
	r.Account.Bill = account.FromNano(1_500_000_000)
	if err := audit(&r); err != nil {
		t.Error(err)
	}
	r.Account.Bill = account.FromNano(1_500_010_000)
	if audit(&r) == nil {
		t.Error("a thousandth of a cent went unnoticed")
	}
	if r.Short = true; audit(&r) != nil {
		t.Error("a run that was not played is audited")
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

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"speed"}, {"cost"}, {"retention", "/nowhere"}, {"cost", "-x"}, {"bench", "-only", "cells,speed"}, {"bench", "-x"}} {
		if err := run(context.Background(), args, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
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
