package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// turns are the requests of the long run's user.
var turns = []string{
	"Our parcel tracker drops events around midnight. Keep the wire format as it is; the ticket is TRK-1177. Find the cause.",
	"Good. Now write the fix, but do not touch internal/legacy, and keep the p99 below 40 ms.",
	"One more thing: the same bug may be in the importer for „Größenänderungen“ (see docs/import.md). Please check 🚚.",
	"Finally, prepare release 4.19.2 and tell me what you changed, in three sentences.",
}

const (
	stepsPerTurn = 11
	developerAt  = 1 // the turn before which a developer message is inserted
)

// longRun returns a run with features that the built-in sample lacks: parallel calls, a developer message in the middle, several
// user turns, calls without text, and non-ASCII characters.
func longRun() replay.Run {
	run := replay.Run{Name: "long", Tools: encode([]any{function("read"), function("exec")})}
	add := func(messages ...any) {
		for _, m := range messages {
			run.Messages = append(run.Messages, encode(m))
		}
	}
	add(map[string]any{"role": "system", "content": "You maintain a parcel tracker. Be brief."})
	for turn, text := range turns {
		if turn == developerAt {
			add(map[string]any{"role": "developer", "content": "From now on, never push to main."})
		}
		add(map[string]any{"role": "user", "content": text})
		for step := range stepsPerTurn {
			add(callsAndResults(turn*stepsPerTurn + step)...)
		}
		if turn < len(turns)-1 {
			add(map[string]any{"role": "assistant", "content": fmt.Sprintf("Part %d is done: see commit %07x.", turn+1, 0xabc123+turn)})
		}
	}
	run.Final = encode(map[string]any{"role": "assistant", "content": "Released 4.19.2. The clock is monotonic now. Nothing else changed."})
	return run
}

// callsAndResults returns an assistant message with one to three calls, and their results.
func callsAndResults(n int) []any {
	message := map[string]any{"role": "assistant", "content": fmt.Sprintf("Step %d: looking closer.", n)}
	if n%4 == 3 {
		message["content"] = nil
	}
	var calls, results []any
	for i := range 1 + n%3 {
		id := fmt.Sprintf("call_%04d%d%08x", n, i, uint32(n*3+i)*2654435761)
		arguments := string(encode(map[string]string{"path": fmt.Sprintf("track/%d/event_%d.go", n, i), "grep": `"at": \d+` + "\n"}))
		calls = append(calls, map[string]any{
			"id": id, "type": "function", "function": map[string]string{"name": []string{"read", "exec"}[i%2], "arguments": arguments},
		})
		results = append(results, map[string]any{"role": "tool", "tool_call_id": id, "content": finding(n, i)})
	}
	message["tool_calls"] = calls
	return append([]any{message}, results...)
}

func finding(n, i int) string {
	var b strings.Builder
	for row := range 3 + n*7%40 {
		fmt.Fprintf(&b, "2024-03-%02d 23:59:%02d parcel %06d état=%q offset %d\n", 1+n%28, row, n*1000+i*100+row, "en route", row*17)
	}
	return b.String()
}

// beginning returns the first steps of the sample.
func beginning(steps int) replay.Run {
	run := demo.Sample()
	next := 2 + 2*steps
	run.Messages, run.Final = run.Messages[:next], run.Messages[next]
	return run
}

func function(name string) any {
	return map[string]any{"type": "function", "function": map[string]any{
		"name": name, "parameters": map[string]any{"type": "object", "properties": map[string]any{}},
	}}
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // only called with the tests' own values
	}
	return raw
}
