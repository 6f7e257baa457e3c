package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// condensersThatHide are configurations that hide most of a history of some 30 messages.
func condensersThatHide() map[string]string {
	const size = "max_size: 12, min_tokens: 0"
	return map[string]string{
		"excerpts":            "{type: excerpts, " + size + "}",
		"llm":                 "{type: llm, llm_config: cheap, wait: deadline, deadline: 1m, " + size + "}",
		"structured summary":  "{type: structured_summary, llm_config: cheap, wait: deadline, deadline: 1m, " + size + "}",
		"amortized":           "{type: amortized_forgetting, " + size + "}",
		"recent events":       "{type: recent_events, max_events: 12}",
		"observation masking": "{type: observation_masking, attention_window: 2}",
	}
}

// steps returns n steps, whose results are long.
func (w wire) steps(name string, n int) (elements []string) {
	for i := range n {
		elements = append(elements, w.step(fmt.Sprintf("call_%s_%08d", name, i), "", strings.Repeat(fmt.Sprintf("src/file%d.go: line %d. ", i, i), 40))...)
	}
	return elements
}

// TestUnansweredWordsStay: what persons said since the model's newest message is forwarded, however much it is.
func TestUnansweredWordsStay(t *testing.T) {
	t.Parallel()
	for name, condenser := range condensersThatHide() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForwarded(t, condenser)
			for _, w := range wires() {
				history := append([]string{w.user("Port the parser.")}, w.steps("a", 6)...)
				f.send(w, history) // a view stands before the words come
				history = append(history, w.steps("b", 6)...)
				var words []string
				for i := range 30 {
					words = append(words, w.user(fmt.Sprintf("Line %d of what was said in the channel. ", i)+strings.Repeat("And more of it. ", 10)))
				}
				sent, _ := f.send(w, append(history, words...))
				all := strings.Join(sent, "\n")
				if !strings.Contains(all, "MASKED") && len(sent) == len(history)+len(words) {
					t.Errorf("%s: %d of %d messages were forwarded", w.name, len(sent), len(history)+len(words))
				}
				for i := range words {
					if said := fmt.Sprintf("Line %d of what", i); !strings.Contains(all, said) {
						t.Errorf("%s: %q was not forwarded", w.name, said)
					}
				}
			}
		})
	}
}

// toolLoaded returns the elements of the Messages API with which Claude Code loads a tool.
func toolLoaded() []string {
	return []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_search_000001","name":"ToolSearch","input":{"query":"select:create"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_search_000001","content":[{"type":"tool_reference","tool_name":"mcp__tracker__create"}]},{"type":"text","text":"Tool loaded."}]}`,
	}
}

// TestWhatLastsStays: items that define tools, change settings or give a sub-agent its task are forwarded wherever they stand in the history,
// and so are items of unknown types. None but the task begins another thread.
func TestWhatLastsStays(t *testing.T) {
	t.Parallel()
	items := map[string][]string{
		"tools":      {`{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"patch","description":"edit"}]}`},
		"a setting":  {`{"type":"configuration_update","reasoning":{"effort":"high"}}`},
		"unknown":    {`{"type":"shiny","x":1}`},
		"a task":     {`{"type":"agent_message","id":"amsg_1","author":"/root","recipient":"HOME","content":[{"type":"input_text","text":"Message Type: NEW_TASK\nPayload:\n"},{"type":"encrypted_content","encrypted_content":"gAAAA"}]}`},
		"found tool": {`{"type":"tool_search_call","call_id":"call_search_000001","execution":"client","arguments":{"query":"calendar"},"status":"completed"}`, `{"type":"tool_search_output","call_id":"call_search_000001","execution":"client","status":"completed","tools":[{"type":"function","name":"create_event","parameters":{"type":"object"}}]}`},
	}
	for name, condenser := range condensersThatHide() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForwarded(t, condenser)
			responses, messages := wires()[2], wires()[1]
			for what, item := range items {
				for _, place := range []int{0, 1, 7, 21, 25} {
					f.stays(responses, what, item, place)
				}
			}
			for _, place := range []int{1, 7, 21} {
				f.stays(messages, "a reference to a tool", toolLoaded(), place)
			}
		})
	}
}

// stays sends a history that has an item at a place, twice, the second time with another step.
func (f *forwarded) stays(w wire, what string, item []string, place int) {
	f.t.Helper()
	key := http.Header{"X-Dewpoint-Session": {strings.ReplaceAll(fmt.Sprint(w.name, what, place), " ", "-")}}
	history := slices.Insert(append([]string{w.user("Port the parser.")}, w.steps("a", 12)...), place, item...)
	_, before := f.send(w, history, key)
	sent, after := f.send(w, append(slices.Clone(history), w.steps("b", 1)...), key)
	for _, element := range item {
		if !slices.Contains(sent, element) {
			f.t.Errorf("%s, %s at %d: not forwarded: %s", w.name, what, place, strings.Join(sent, "\n"))
		}
	}
	if before != after {
		f.t.Errorf("%s, %s at %d: the next request is in thread %s instead of %s", w.name, what, place, after, before)
	}
	if len(sent) == len(history)+2 && !strings.Contains(strings.Join(sent, ""), "MASKED") {
		f.t.Errorf("%s, %s at %d: nothing was hidden", w.name, what, place)
	}
}

// TestSystemResults: an agent without tool calls hands the model its results in system messages. They are condensed like other results, and
// prove to which run they belong.
func TestSystemResults(t *testing.T) {
	t.Parallel()
	for name, condenser := range condensersThatHide() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForwarded(t, condenser)
			for _, w := range []wire{wires()[0], wires()[2]} {
				first, other := f.readLogs(w, "first"), f.readLogs(w, "other")
				if first == other {
					t.Errorf("%s: two runs with other results are one thread", w.name)
				}
			}
		})
	}
}

// readLogs sends the requests of a run that reads logs, and returns its thread. Each answer is "ok", so only the results tell runs apart.
func (f *forwarded) readLogs(w wire, run string) (thread string) {
	f.t.Helper()
	const steps = 20
	history := []string{w.message("system", "You work in a terminal."), w.user("Look at the logs.")}
	sent, _ := f.send(w, history)
	for i := range steps {
		result := fmt.Sprintf("Ran command: cat log%d\n", i) + strings.Repeat(fmt.Sprintf("line of log %d in the %s run\n", i, run), 40)
		history = append(history, w.message("assistant", "ok"), w.message("system", result))
		var now string
		sent, now = f.send(w, history)
		if i > 0 && now != thread {
			f.t.Errorf("%s, step %d: the request is in thread %s instead of %s", w.name, i, now, thread)
		}
		thread = now
		if newest := sent[len(sent)-1]; newest != history[len(history)-1] {
			f.t.Errorf("%s, step %d: the newest result was not forwarded, but %s", w.name, i, newest)
		}
	}
	all := strings.Join(sent, "")
	if whole := len(strings.Join(history, "")); len(all) > whole*2/3 {
		f.t.Errorf("%s: %d of %d bytes were forwarded", w.name, len(all), whole)
	}
	if run == "other" && strings.Contains(all, "in the first run") {
		f.t.Errorf("%s: another run's results were forwarded: %s", w.name, all)
	}
	return thread
}
