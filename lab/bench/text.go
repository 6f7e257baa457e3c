package bench

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
)

const (
	// resultMedian and resultSpread are the median of a tool result's size, in bytes, and how far results are from it (sigma of
	// a lognormal distribution): most are short, some are long.
	resultMedian = 1300
	resultSpread = 0.9
)

const systemPrompt = `You are a coding agent in a sandbox with a shell. Work in small steps: look before you change, run the tests after
each change, and keep the user's constraints in mind.

RULES
* Never commit to main; use a branch named "fix/<ticket>".
* Quote paths that hold spaces: "docs/Über uns/read me.md".
* A command that fails twice in the same way is not run a third time; say what you tried.
* Answers are short. Code goes into files, not into chat.

ENVIRONMENT
Linux 6.1, bash 5.2, Go 1.26, Python 3.12, ripgrep 14.1. The working directory is /workspace/importer. There is no network.
`

// Model is the model that bodies name.
const Model = "bench-model"

const (
	bodyTail         = `],"model":"` + Model + `",` + bodyTools + `,"temperature":0.2,"parallel_tool_calls":true}`
	bodyTailStreamed = `],"model":"` + Model + `",` + bodyTools + `,"temperature":0.2,"stream":true,"stream_options":{"include_usage":true}}`
)

const bodyTools = `"tools":[{"type":"function","function":{"name":"bash","description":"Run a command in the shell. Output over 30000 characters is cut.",` +
	`"parameters":{"type":"object","properties":{"command":{"type":"string","description":"What to run."},"timeout":{"type":"integer"}},"required":["command"]}}},` +
	`{"type":"function","function":{"name":"edit","description":"Replace \"old\" by \"new\" in a file; \"old\" must occur once.",` +
	`"parameters":{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}},"required":["path","old","new"]}}},` +
	`{"type":"function","function":{"name":"finish","description":"End the task.","parameters":{"type":"object","properties":{"message":{"type":"string"}}}}}],"tool_choice":"auto"`

// resultSize draws the size of a tool's result, in bytes.
func (w *writer) resultSize() int {
	n := float64(resultMedian) * math.Exp(resultSpread*w.rand.NormFloat64())
	return min(max(int(n), 80), w.longest)
}

// thought is what an agent says before it calls, now and then nothing.
func (w *writer) thought() string {
	if w.rand.IntN(4) == 0 {
		return ""
	}
	said := "I will look at " + w.path()
	for range 6 + w.rand.IntN(30) {
		said += " " + w.word()
	}
	return said + ".\n"
}

// arguments is a call's arguments: JSON with its own escapes.
func (w *writer) arguments() string {
	command := "cd /workspace/importer && rg -n \"" + w.word() + "\\(\" " + w.path()
	if w.rand.IntN(3) == 0 {
		command = "python - <<'EOF'\n" + string(w.lines(150+w.rand.IntN(500))) + "EOF"
	}
	return fmt.Sprintf(`{"command": %s, "timeout": %d}`, quote(command), 30*(1+w.rand.IntN(9)))
}

// lines are code and log lines of about n bytes. They are valid until the next call.
func (w *writer) lines(n int) []byte {
	w.text = w.text[:0]
	for len(w.text) < n {
		w.line()
		w.text = append(w.text, '\n')
	}
	return w.text
}

// line writes a line, the words and numbers of each kind in their order.
func (w *writer) line() {
	number := w.rand.IntN(100000)
	put := func(format string, parts ...any) { w.text = fmt.Appendf(w.text, format, parts...) }
	switch w.rand.IntN(8) {
	case 0:
		put("%s:%d:\t%s := %s(\"%s\", %d)", w.path(), w.rand.IntN(900), w.word(), w.word(), w.word(), number)
	case 1:
		put("\tif err := %s.%s(ctx, %s); err != nil {", w.word(), w.word(), w.word())
	case 2:
		put("\t\treturn fmt.Errorf(\"%s %%q: %%w\", %s, err) // %s %s", w.word(), w.word(), w.word(), w.word())
	case 3:
		put("2026-03-0%dT12:%d:07.%dZ WARN %s: %s=%d C:\\data\\%s", 1+w.rand.IntN(9), 10+w.rand.IntN(50), number, w.word(), w.word(), number, w.word())
	case 4:
		put("--- FAIL: Test%s (0.%ds) → %s ≠ %s “%s”", w.word(), number, w.word(), w.word(), w.word())
	case 5:
		put("{\"id\": \"%x\", \"%s\": %d, \"path\": \"%s\"}", w.rand.Uint64(), w.word(), number, w.path())
	case 6:
		for range 5 + w.rand.IntN(12) {
			put("%s ", w.word())
		}
	default:
		put("commit %x%x %s größe 東京 %s", w.rand.Uint64(), w.rand.Uint64(), w.word(), w.word())
	}
}

func (w *writer) path() string {
	return "internal/" + w.word() + "/" + w.word() + "_" + w.word() + ".go"
}

// word makes a word, or an identifier of some. There are tens of thousands of them, and they come to as many tokens as what agents
// read does: about one for 3.7 bytes.
func (w *writer) word() string {
	switch w.rand.IntN(5) {
	case 0:
		return w.term() + "_" + w.term()
	case 1:
		second := w.term()
		return w.term() + strings.ToUpper(second[:1]) + second[1:]
	}
	return w.term()
}

func (w *writer) term() string { return w.terms[w.rand.IntN(len(w.terms))] }

// vocabulary is what programs, and those who write them, talk of.
//
//go:embed vocabulary.txt
var vocabulary string
