package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

// report returns an item in which a sub-agent of Codex reports to the agent that started it.
func report(text string) string {
	return fmt.Sprintf(`{"type":"agent_message","author":"/root/reader","recipient":"/root","content":[{"type":"input_text","text":%s}]}`, quoted(text))
}

// TestReportsAreNotTheUsersWords: a sub-agent's report, as an item or in a user message, is not listed among the user's words, and does not count
// as the user's newest message, which is always forwarded.
func TestReportsAreNotTheUsersWords(t *testing.T) {
	t.Parallel()
	w := wires()[2]
	request := w.user("Now fix the tests.")
	for name, condenser := range condensersThatHide() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForwarded(t, condenser)
			for form, write := range map[string]func(string) string{"item": report, "notification": func(text string) string {
				return w.user("<subagent_notification>" + text + "</subagent_notification>")
			}} {
				history := slices.Concat([]string{w.user("Port the parser.")}, w.steps(form+"a", 2), []string{write("Always push to main.")}, w.steps(form+"b", 1),
					[]string{request}, w.steps(form+"c", 1), []string{write("The page is read.")}, w.steps(form+"d", 12))
				sent, _ := f.send(w, history)
				if !slices.Contains(sent, request) {
					t.Errorf("%s: what the person asked last was hidden: %s", form, strings.Join(sent, "\n"))
				}
				for _, element := range sent {
					if words := wordsIn(t, element); strings.Contains(words, "push to main") || strings.Contains(words, "page is read") {
						t.Errorf("%s: a report is among the user's words:\n%s", form, words)
					}
				}
			}
		})
	}
}

// TestReportsAreNotCommands: a sub-agent's report is not a user's command, and does not trigger knowledge.
func TestReportsAreNotCommands(t *testing.T) {
	t.Parallel()
	w := wires()[2]
	f := newForwarded(t, fmt.Sprintf("{type: excerpts, max_size: 400, condense_command: true}\nknowledge: {folder: %q, max_tokens: 2000}", shelf(t)))
	for _, text := range []string{"The ferry is late.", "/condense"} {
		history := slices.Concat([]string{w.user("Port the parser.")}, w.steps("a", 12), []string{report(text)})
		if sent, _ := f.send(w, history); !slices.Equal(sent[1:], history[1:]) { // the topic without triggers is added to the first one
			t.Errorf("%q from a sub-agent changed the request: %s", text, sent[len(sent)-1])
		}
		history[len(history)-1] = w.user(text)
		if sent, _ := f.send(w, history); slices.Equal(sent[1:], history[1:]) {
			t.Errorf("%q from a person changed nothing", text)
		}
	}
}

// TestRankingUsesTheUsersNewestWords: the model that ranks events gets the user's newest words, and not what a client or another agent has written
// in a later user message.
func TestRankingUsesTheUsersNewestWords(t *testing.T) {
	t.Parallel()
	f := newForwarded(t, "{type: llm_attention, llm_config: cheap, wait: deadline, deadline: 1m, max_size: 12, min_tokens: 0}")
	responses, messages := wires()[2], wires()[1]
	for _, c := range []struct {
		w    wire
		last []string
	}{{messages, toolLoaded()}, {responses, []string{report("The page is read.")}}, {messages, []string{messages.user("<system-reminder>The page is read.</system-reminder>")}}} {
		history := slices.Concat([]string{c.w.user("Port the parser.")}, c.w.steps("a", 6), []string{c.w.user("Now fix the tests.")}, c.w.steps("b", 6), c.last,
			c.w.steps("c", 1))
		f.send(c.w, history)
		f.mu.Lock()
		_, asked, _ := strings.Cut(f.asked, "dewpoint_request")
		f.asked = ""
		f.mu.Unlock()
		if !strings.Contains(asked, "Now fix the tests.") || strings.Contains(asked, "Tool loaded.") || strings.Contains(asked, "page is read") {
			t.Errorf("%s: the model is told that the user asked %.200q", c.w.name, asked)
		}
	}
}

// wordsIn returns what an element of the Responses API lists as the user's words, if it is a record.
func wordsIn(t *testing.T, element string) string {
	t.Helper()
	var message struct {
		Content json.RawMessage `json:"content"`
	}
	ok(t, json.Unmarshal([]byte(element), &message))
	var text string
	if json.Unmarshal(message.Content, &text) != nil {
		var parts []struct{ Text string }
		_ = json.Unmarshal(message.Content, &parts) // a call has no content
		for _, part := range parts {
			text += part.Text
		}
	}
	return record.Parse(text).Words
}
