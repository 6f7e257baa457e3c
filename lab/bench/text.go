package bench

import (
	_ "embed"
	"math"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
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

// thought is what an agent says before it calls.
func (w *writer) thought() []byte {
	if w.rand.IntN(4) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("I will look at ")
	b.WriteString(w.path())
	for range 6 + w.rand.IntN(30) {
		b.WriteByte(' ')
		b.WriteString(w.word())
	}
	b.WriteString(".\n")
	return []byte(b.String())
}

// arguments is a call's arguments: JSON with its own escapes, to be quoted once more.
func (w *writer) arguments() []byte {
	command := "cd /workspace/importer && rg -n \"" + w.word() + "\\(\" " + w.path()
	if w.rand.IntN(3) == 0 {
		command = "python - <<'EOF'\n" + string(w.lines(150+w.rand.IntN(500))) + "EOF"
	}
	out := rawjson.AppendQuote([]byte(`{"command": `), command)
	return append(out, `, "timeout": `+strconv.Itoa(30*(1+w.rand.IntN(9)))+`}`...)
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

func (w *writer) line() {
	add := func(parts ...string) {
		for _, p := range parts {
			w.text = append(w.text, p...)
		}
	}
	switch number := strconv.Itoa(w.rand.IntN(100000)); w.rand.IntN(8) {
	case 0:
		add(w.path(), ":", strconv.Itoa(w.rand.IntN(900)), ":\t", w.word(), " := ", w.word(), "(\"", w.word(), "\", ", number, ")")
	case 1:
		add("\tif err := ", w.word(), ".", w.word(), "(ctx, ", w.word(), "); err != nil {")
	case 2:
		add("\t\treturn fmt.Errorf(\"", w.word(), " %q: %w\", ", w.word(), ", err) // ", w.word(), " ", w.word())
	case 3:
		add("2026-03-0", strconv.Itoa(1+w.rand.IntN(9)), "T12:", strconv.Itoa(10+w.rand.IntN(50)), ":07.", number, "Z WARN ", w.word(), ": ", w.word(), "=", number, " C:\\data\\", w.word())
	case 4:
		add("--- FAIL: Test", w.word(), " (0.", number, "s) → ", w.word(), " ≠ ", w.word(), " “", w.word(), "”")
	case 5:
		add("{\"id\": \"", strconv.FormatUint(w.rand.Uint64(), 16), "\", \"", w.word(), "\": ", number, ", \"path\": \"", w.path(), "\"}")
	case 6:
		for range 5 + w.rand.IntN(12) {
			add(w.word(), " ")
		}
	default:
		add("commit ", strconv.FormatUint(w.rand.Uint64(), 16), strconv.FormatUint(w.rand.Uint64(), 16), " ", w.word(), " größe 東京 ", w.word())
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
