// Package demo plays a built-in sample of an agent run through the real proxy, to show what the proxy does.
package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// task is the request of the sample's user.
const task = "The nightly job of our inventory service fails since Tuesday: some warehouses report negative stock. " +
	"Find out why and fix it. Do not change the public API in api/v2, keep Go 1.22 compatibility, and run the whole test " +
	"suite before you finish. The ticket is INV-4821."

const prompt = "You are a coding agent. Work in small steps with the tools you have, and say when you are done."

// act is one step of the sample: a thought, a tool call and its result.
type act struct {
	thought, tool string
	arguments     map[string]any
	result        string
}

// Sample builds the run of an agent that searches for a bug in a small code base. Like real agents, it reads the same files again
// and again, and runs the tests too often.
func Sample() replay.Run {
	run := replay.Run{Name: "sample", Tools: tools()}
	run.Messages = append(run.Messages,
		encode(map[string]any{"role": "system", "content": prompt}),
		encode(map[string]any{"role": "user", "content": task}))
	for i, a := range acts() {
		run.Messages = append(run.Messages, a.messages(i)...)
	}
	run.Final = encode(map[string]any{"role": "assistant", "content": "Done. Stock went negative because reserve() and " +
		"release() took the row lock in different order and the retry in jobs/nightly.go applied a movement twice. " +
		"I made movements idempotent by movement_id, fixed the lock order, and all 214 tests pass. api/v2 is untouched."})
	return run
}

func (a act) messages(i int) []json.RawMessage {
	id := fmt.Sprintf("call_%04d%08x", i, uint32(i)*2654435761) //nolint:gosec // small, and only an id
	arguments := string(encode(a.arguments))
	return []json.RawMessage{
		encode(map[string]any{"role": "assistant", "content": a.thought, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]any{"name": a.tool, "arguments": arguments},
		}}}),
		encode(map[string]any{"role": "tool", "tool_call_id": id, "content": a.result}),
	}
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // only called with strings and maps of strings
	}
	return raw
}

func tools() json.RawMessage {
	tool := func(name, description, argument string) any {
		return map[string]any{"type": "function", "function": map[string]any{
			"name": name, "description": description, "parameters": map[string]any{
				"type": "object", "properties": map[string]any{argument: map[string]any{"type": "string"}},
			},
		}}
	}
	return encode([]any{
		tool("read_file", "Read a file.", "path"), tool("run", "Run a shell command.", "command"),
		tool("edit_file", "Replace text in a file.", "path"),
	})
}

// files are the files that the sample's agent reads.
var files = []struct{ path, subject string }{
	{"stock/reserve.go", "reserve"}, {"stock/release.go", "release"}, {"stock/movement.go", "movement"},
	{"jobs/nightly.go", "nightly"}, {"jobs/retry.go", "retry"}, {"store/postgres.go", "postgres"},
	{"store/lock.go", "lock"}, {"api/v2/stock.go", "handler"},
}

func acts() []act {
	out := []act{{
		thought: "Let me look at the repository.", tool: "run", arguments: map[string]any{"command": "git log --oneline -12 && ls -R"},
		result: listing(),
	}}
	for round := range 4 {
		for i, f := range files {
			out = append(out, act{
				thought: fmt.Sprintf("Reading %s.", f.path), tool: "read_file", arguments: map[string]any{"path": f.path},
				result: source(f.path, f.subject, round),
			})
			if i%2 == 1 {
				out = append(out, testRun(round*len(files)+i))
			}
		}
		out = append(out, edit(round))
	}
	return append(out, act{
		thought: "The whole suite, before I finish.", tool: "run", arguments: map[string]any{"command": "go test ./..."},
		result: strings.Repeat("ok  \tinventory/pkg\t0.41s\n", 18) + "214 tests, 0 failures\n",
	})
}

func listing() string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "%07x change %d of the inventory service\n", 0x4f1a2c0+i*7919, i)
	}
	for _, f := range files {
		fmt.Fprintf(&b, "./%s\n", f.path)
	}
	return b.String()
}

func source(path, subject string, round int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\npackage %s\n\n", path, strings.Split(path, "/")[0])
	for i := range 24 {
		fmt.Fprintf(&b, "// %s%d handles case %d of a %s.\nfunc %s%d(ctx context.Context, warehouse int64, quantity int) error {\n"+
			"\tif quantity < %d {\n\t\treturn fmt.Errorf(\"%s %%d: quantity %%d below %d\", warehouse, quantity)\n\t}\n"+
			"\treturn store.Apply(ctx, Movement{Warehouse: warehouse, Quantity: quantity, Kind: %q, Round: %d})\n}\n\n",
			subject, i, i, subject, subject, i, i, subject, i, subject, round)
	}
	return b.String()
}

func testRun(n int) act {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "=== RUN   TestStock/warehouse_%d\n--- PASS: TestStock/warehouse_%d (0.0%ds)\n", 100+i, 100+i, i%9)
	}
	fmt.Fprintf(&b, "--- FAIL: TestNightly/negative_stock (0.12s)\n    nightly_test.go:%d: warehouse 4711: stock = -%d, want >= 0\n"+
		"    movement 9f3c%04x applied twice (ErrDuplicateMovement)\nFAIL\n", 120+n, 3+n, 4096+n*31)
	return act{
		thought: "Does the test still fail?", tool: "run",
		arguments: map[string]any{"command": "go test ./stock/... ./jobs/... -run 'Stock|Nightly' -v"}, result: b.String(),
	}
}

func edit(round int) act {
	f := files[round%len(files)]
	return act{
		thought: fmt.Sprintf("Attempt %d: make the movement idempotent in %s.", round+1, f.path), tool: "edit_file",
		arguments: map[string]any{"path": f.path, "old": "store.Apply(ctx, m)", "new": "store.ApplyOnce(ctx, m.ID, m)"},
		result:    fmt.Sprintf("edited %s: 1 replacement, 2 files reformatted", f.path),
	}
}
