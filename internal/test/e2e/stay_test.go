package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
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

// TestUnansweredWordsAreForwarded: all user messages since the model's newest message are forwarded, however long they are.
func TestUnansweredWordsAreForwarded(t *testing.T) {
	t.Parallel()
	condensers := condensersThatHide()
	delete(condensers, "observation masking") // touches only results
	for name, condenser := range condensers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForwarded(t, condenser)
			for _, w := range wires() {
				history := append([]string{w.user("Port the parser.")}, w.steps("a", 6)...)
				f.send(w, history) // so that there is a condensed view before the words arrive
				history = append(history, w.steps("b", 6)...)
				var words []string
				for i := range 30 {
					words = append(words, w.user(fmt.Sprintf("Line %d of what was said in the channel. ", i)+strings.Repeat("And more of it. ", 10)))
				}
				sent, _ := f.send(w, append(history, words...))
				all := strings.Join(sent, "\n")
				if len(sent) == len(history)+len(words) {
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

// TestUnansweredResultsAreForwarded: the results of all calls in the model's newest message are forwarded completely, however many there are.
func TestUnansweredResultsAreForwarded(t *testing.T) {
	t.Parallel()
	for name, condenser := range condensersThatHide() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForwarded(t, condenser)
			for _, w := range wires() {
				history := append([]string{w.user("Port the parser.")}, w.steps("a", 6)...)
				f.send(w, history) // so that there is a condensed view before the results arrive
				history = append(history, w.steps("b", 6)...)
				var ids, results []string
				for i := range 20 {
					ids = append(ids, fmt.Sprintf("call_c_%08d", i))
					results = append(results, strings.Repeat(fmt.Sprintf("Line of result %d. ", i), 20))
				}
				newest := w.fanOut(ids, results)
				sent, _ := f.send(w, append(history, newest...))
				if !slices.Equal(sent[max(len(sent)-len(newest), 0):], newest) {
					t.Errorf("%s: the newest results were changed or hidden: %s", w.name, strings.Join(sent, "\n"))
				}
				if all := strings.Join(sent, ""); len(all) >= len(strings.Join(history, ""))+len(strings.Join(newest, "")) {
					t.Errorf("%s: all was forwarded", w.name)
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

// TestLastingItemsAreForwarded: items that define tools, change settings or give a sub-agent its task are forwarded, whatever their position in the
// history. Only the task begins another thread.
func TestLastingItemsAreForwarded(t *testing.T) {
	t.Parallel()
	items := map[string][]string{
		"tools":      {`{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"patch","description":"edit"}]}`},
		"a setting":  {`{"type":"configuration_update","reasoning":{"effort":"high"}}`},
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
	history := slices.Insert(append([]string{w.user("Port the parser.")}, w.steps("a", 12)...), place, item...)
	if err := f.stay(w, fmt.Sprint(w.name, what, place), history, item); err != nil {
		f.t.Errorf("%s, %s at %d: %v", w.name, what, place, err)
	}
}

// stay sends a history of a session twice, the second time with another step. It checks that the given elements are forwarded in their order, that
// others are hidden, and that both requests are in one thread.
func (f *forwarded) stay(w wire, session string, history, elements []string) error {
	key := http.Header{"X-Dewpoint-Session": {strings.ReplaceAll(session, " ", "-")}}
	_, before := f.send(w, history, key)
	sent, after := f.send(w, append(slices.Clone(history), w.steps("b", 1)...), key)
	rest := sent
	for _, element := range elements {
		at := slices.Index(rest, element)
		if at < 0 {
			return fmt.Errorf("not forwarded: %s", element)
		}
		rest = rest[at+1:]
	}
	if before != after {
		return fmt.Errorf("the next request is in thread %s instead of %s", after, before)
	}
	if len(sent) == len(history)+2 && !strings.Contains(strings.Join(sent, ""), "MASKED") {
		return errors.New("nothing was hidden")
	}
	return nil
}

// TestUnknownItemsAreForwarded: items of unknown types are forwarded, whatever their content and their position in the history.
func TestUnknownItemsAreForwarded(t *testing.T) {
	t.Parallel()
	w, cases := wires()[2], 0
	proxies := map[string]*forwarded{}
	for name, condenser := range condensersThatHide() {
		proxies[name] = newForwarded(t, condenser)
	}
	names := slices.Sorted(maps.Keys(proxies))
	property.Check(t, func(rt *rapid.T) {
		cases++
		session := fmt.Sprint("case", cases)
		history := append([]string{w.user("Port the parser.")}, w.steps(session, rapid.IntRange(8, 14).Draw(rt, "steps"))...)
		items := rapid.SliceOfN(unknownItem(), 1, 4).Draw(rt, "items")
		at := 0
		for i, item := range items {
			at = rapid.IntRange(at, len(history)).Draw(rt, fmt.Sprint("place ", i))
			history = slices.Insert(history, at, item)
			at++
		}
		if err := proxies[rapid.SampledFrom(names).Draw(rt, "condenser")].stay(w, session, history, items); err != nil {
			rt.Fatal(err)
		}
	})
}

// unknownItem draws an item of the Responses API of a type that no server has. Types with the endings _call and _output are calls and results.
func unknownItem() *rapid.Generator[string] {
	return rapid.Custom(func(rt *rapid.T) string {
		item := map[string]any{"type": "x" + rapid.StringMatching(`[a-z_.]{0,20}`).Draw(rt, "type") + "y"}
		for _, member := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"id", "role", "name", "content", "output", "summary", "payload", "tools"}), rapid.ID).Draw(rt, "members") {
			text := rapid.StringN(0, 60, -1).Draw(rt, member)
			switch rapid.IntRange(0, 3).Draw(rt, "form of "+member) {
			case 0:
				item[member] = text
			case 1:
				item[member] = strings.Repeat(text, 40)
			case 2:
				item[member] = []any{map[string]any{"type": "input_text", "text": text}}
			case 3:
				item[member] = map[string]any{"x": len(text), "y": nil}
			}
		}
		raw, err := json.Marshal(item)
		if err != nil {
			rt.Fatal(err)
		}
		return string(raw)
	})
}

// TestSystemResults: an agent without tool calls sends results to the model in system messages. They are condensed like other results, and
// identify their run.
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
