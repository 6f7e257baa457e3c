package logs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/replay/logs"
)

// read returns the runs in a file, as text.
func read(t *testing.T, r *logs.Reader, path string) (runs []string, broken int, err error) {
	t.Helper()
	broken, err = r.Read(path, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), func(run replay.Run) error {
		runs = append(runs, describe(&run))
		return nil
	})
	return runs, broken, err
}

// describe writes a run: its name, and each message, with what is recorded of an answer that counts.
func describe(run *replay.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d steps", run.Name, run.Steps())
	if run.Protocol != "" {
		fmt.Fprintf(&b, ", %s", run.Protocol)
	}
	for _, outside := range [][]byte{run.System, run.Tools} {
		if len(outside) > 0 {
			fmt.Fprintf(&b, "\noutside: %s", outside)
		}
	}
	counted := map[int]replay.Recorded{}
	for _, c := range run.Calls() {
		counted[len(c.Messages)] = c.Recorded
	}
	for i, m := range run.Messages {
		fmt.Fprintf(&b, "\n%s", m)
		if r, ok := counted[i]; ok {
			fmt.Fprintf(&b, " <- %s %d", r.Model, r.Prompt)
		}
	}
	return b.String()
}

// equal compares runs with what a file of the test data says.
func equal(t *testing.T, runs []string, golden string) {
	t.Helper()
	path := filepath.Join("testdata", golden)
	got := strings.Join(runs, "\n\n") + "\n"
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestClaude reads a session with two calls in one answer, an answer of a failed request, a side chain, a message sent again in other words, a
// compaction, and a last line that is half written.
func TestClaude(t *testing.T) {
	runs, broken, err := read(t, logs.NewReader(), "testdata/claude.jsonl")
	if err != nil || broken != 0 {
		t.Errorf("%v, %d broken lines", err, broken)
	}
	equal(t, runs, "claude.txt")
}

func TestClaudeSubAgentsAreRunsOfTheirOwn(t *testing.T) {
	runs, _, err := read(t, logs.NewReader(), "testdata/agent.jsonl")
	if err != nil || len(runs) != 1 || !strings.HasPrefix(runs[0], "agent (sub-agent), 1 steps, messages\n") {
		t.Errorf("%v: %q", err, runs)
	}
}

// TestResumedSessionsCountOnce: the file of a resumed session repeats what another file has.
func TestResumedSessionsCountOnce(t *testing.T) {
	r := logs.NewReader()
	if _, _, err := read(t, r, "testdata/claude.jsonl"); err != nil {
		t.Fatal(err)
	}
	runs, _, err := read(t, r, "testdata/resumed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, runs, "resumed.txt")
	if runs, _, err = read(t, r, "testdata/claude.jsonl"); err != nil || len(runs) > 0 {
		t.Errorf("the same file again: %v, %q", err, runs)
	}
}

// TestCodex reads a session with reasoning and calls, a turn that was taken back, a change of the model, and a compaction.
func TestCodex(t *testing.T) {
	runs, broken, err := read(t, logs.NewReader(), "testdata/codex.jsonl")
	if err != nil || broken != 0 {
		t.Errorf("%v, %d broken lines", err, broken)
	}
	equal(t, runs, "codex.txt")
}

// TestLists reads lists of messages in all forms.
func TestLists(t *testing.T) {
	const (
		ask, answer = `{"role":"user","content":"Hi"}`, `{"role":"assistant","content":"Hello"}`
		chat        = "x, 1 steps\n" + ask + "\n" + answer + " <- "
		blocks      = `{"role":"user","content":[{"type":"text","text":"Hi"}]}` + "\n" + `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}]} <- `
		call        = `{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ls", "input": {}, "cache_control": {"type": "ephemeral"}}]}`
	)
	for name, c := range map[string]struct{ text, want string }{
		"list":            {"[" + ask + ",\n" + answer + "]", chat + " 0"},
		"list in a line":  {"[" + ask + "," + answer + "]", chat + " 0"},
		"object":          {`{"messages": [` + ask + "," + answer + "]}", chat + " 0"},
		"body":            {`{"model":"m","tools":[1],"messages":[` + ask + "," + answer + "]}", "x, 1 steps\noutside: [1]\n" + ask + "\n" + answer + " <- m 0"},
		"our own form":    {`{"id":"named","messages":[` + ask + `],"final_response":` + answer + "}", "named" + chat[1:] + " 0"},
		"message a line":  {ask + "\n\n" + answer + "\n", chat + " 0"},
		"list a line":     {"[" + ask + "," + answer + "]\n{\"messages\":[" + ask + "," + answer + "]}\n", chat + " 0\n\nx#2" + chat[1:] + " 0"},
		"Anthropic's":     {"[" + ask + "," + call + "]", "x, 1 steps, messages\n" + blocks + " 0"},
		"Anthropic's all": {`{"system":"Be.","messages":[` + ask + "," + call + "]}", "x, 1 steps, messages\noutside: [{\"type\":\"text\",\"text\":\"Be.\"}]\n" + blocks + " 0"},
		"Responses": {
			`{"instructions":"Be.","input":[` + ask + `,{"type":"reasoning","id":"r"},{"type":"function_call","name":"ls"},{"type":"function_call_output","output":""}]}`,
			"x, 1 steps, responses\noutside: \"Be.\"\n" + ask + "\n" + `{"type":"reasoning","id":"r"},{"type":"function_call","name":"ls"} <-  0` + "\n" + `{"type":"function_call_output","output":""}`,
		},
	} {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		runs, broken, err := read(t, logs.NewReader(), path)
		if got := strings.Join(runs, "\n\n"); err != nil || broken > 0 || got != c.want {
			t.Errorf("%s: %v, %d broken lines, got\n%s\nwant\n%s", name, err, broken, got, c.want)
		}
	}
}

// TestBrokenFilesAreNamed: what is no log is told from what is broken, and lines that can be read are.
func TestBrokenFilesAreNamed(t *testing.T) {
	const pair = `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]`
	for text, want := range map[string]string{
		"":                                 "unknown: it has no messages, and is no log of Claude Code or Codex",
		`{}`:                               "unknown: it has no messages, and is no log of Claude Code or Codex",
		`{"name":"shop","version":"1"}`:    "unknown: it has no messages, and is no log of Claude Code or Codex",
		`[]`:                               "unknown: it has no answer of a model after a message",
		`[1, 2]`:                           "unknown: it has no answer of a model after a message",
		`{"messages": [`:                   "broken: it is not valid JSON",
		"hello":                            "broken: it is not valid JSON",
		`{"messages": [], "tools": `:       "broken: it is not valid JSON",
		pair + "\n{\"mess\n" + pair + "\n": "2 runs, 1 broken",
		"{\"mess\n" + pair + "\n":          "1 runs, 1 broken",
		pair + "\n{\"mess":                 "1 runs, 0 broken",
	} {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runs, broken, err := read(t, logs.NewReader(), path)
		got := fmt.Sprintf("%d runs, %d broken", len(runs), broken)
		if _, unknown := errors.AsType[logs.Unknown](err); unknown {
			got = "unknown: " + err.Error()
		} else if err != nil {
			got = "broken: " + err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a/1.jsonl", "a/sub/2.jsonl", "a/sub/2.meta.json", "a/notes.txt", "b.json"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{
		"": "[a/1.jsonl a/sub/2.jsonl b.json]", "a": "[1.jsonl sub/2.jsonl]", "b.json": "[b.json]", "*.json": "[b.json]", "a/*": "[1.jsonl notes.txt 2.jsonl]",
		"**/*.jsonl": "[a/1.jsonl a/sub/2.jsonl]", "a/notes.txt": "[notes.txt]", "absent": "error", "*.csv": "error", "[": "error",
	} {
		files, err := logs.Find([]string{filepath.Join(root, arg), filepath.Join(root, "b.json")})
		var names []string
		for _, f := range files {
			if f.Path != filepath.Join(root, "b.json") || arg == "" || strings.HasSuffix(arg, ".json") {
				names = append(names, f.Name)
			}
		}
		got := fmt.Sprint(names)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", arg, got, want)
		}
	}
}
