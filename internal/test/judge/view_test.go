package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestIdenticalMessagesAreMapped: if a view without a summary has some of several identical messages, they are mapped to the newest ones.
func TestIdenticalMessagesAreMapped(t *testing.T) {
	f := func(sent, forwarded string, want ...int) {
		t.Helper()
		was, _ := history(t, sent)
		is, _ := history(t, forwarded)
		v, err := LayOver(was, is)
		if err != nil {
			t.Errorf("%s: %v", forwarded, err)
			return
		}
		if err := v.Check(); err != nil {
			t.Errorf("%s: %v", forwarded, err)
		}
		if !slices.Equal(v.from, want) {
			t.Errorf("%s: mapped to %v, want %v", forwarded, v.from, want)
		}
	}
	f("s u g u g u g u", "s u g u g u g u", 0, 1, 2, 3, 4, 5, 6, 7)
	f("s u g g2 u g u g u", "s u g u", 0, 1, 2, 8)
	f("s uA gA uB gA uC gA uC", "s uA gA uC", 0, 1, 2, 7)
	f("s uA aX oX uB gA uC aX oX", "s uA uC aX oX", 0, 1, 6, 7, 8)
	f("s uA gA uB gA uC gA uC", "s uA [x] gA uC", 0, 1, -1, 6, 7)
	f("s uA gA uB gA", "s uA gA uB gA", 0, 1, 2, 3, 4)
}

// TestResultsWithoutWhatIsShown: a result may omit lines that an earlier forwarded result has, and no others.
func TestResultsWithoutWhatIsShown(t *testing.T) {
	body := func(results ...string) []byte {
		messages := []any{map[string]any{"role": "user", "content": "go"}}
		for i, text := range results {
			call := map[string]any{"id": fmt.Sprint("c", i), "type": "function", "function": map[string]any{"name": "f", "arguments": "{}"}}
			messages = append(messages, map[string]any{"role": "assistant", "tool_calls": []any{call}},
				map[string]any{"role": "tool", "tool_call_id": fmt.Sprint("c", i), "content": text})
		}
		out, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	lines := strings.Repeat("a line that is long enough to matter\n", 3)
	note := func(n int, call string) string {
		return fmt.Sprintf("[%d lines left out here, from \"a line\" on: they stand unchanged in the result of %s above]", n, call)
	}
	sent := body("\x1b[1mone\x1b[0m\n"+lines, "two\n"+lines+"end")
	f := func(forwarded []byte, good bool) {
		t.Helper()
		if _, err := LayOver(sent, forwarded); (err == nil) != good {
			t.Errorf("%s: %v", forwarded, err)
		}
	}
	f(sent, true)
	f(body("one\n"+lines, "two\n"+lines+"end"), true)
	f(body("one\n"+lines, "two\n"+note(3, "c0")+"\nend"), true)
	f(body("one\n"+lines, "two\n"+note(2, "c0")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(4, "c0")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(3, "c1")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(3, "c9")+"\nend"), false)
	f(body("<MASKED>", "two\n"+note(3, "c0")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(3, "c0")), false)
}

// TestAnswersInARow: two consecutive assistant messages are translated so that they remain distinct when translated back, and so that the
// second has the right history.
func TestAnswersInARow(t *testing.T) {
	_, history := history(t, "u1 aA oA g1 aB oB g2 g3 u2")
	_, whole := items{}.list(history)
	var who []string
	all, err := toChat(items{}.Dialect(), marshal(map[string]any{"model": "", "input": slices.Concat(whole...)}))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		who = append(who, readMessage(m).Role)
	}
	if got, want := strings.Join(who, " "), "user assistant tool assistant user assistant tool assistant user assistant user"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, n := range []int{1, 3, 4, 6, 7} { // number of messages sent for each answer
		_, begun := items{}.list(history[:n])
		if got, want := marshal(begun), marshal(whole[:len(begun)]); string(got) != string(want) {
			t.Errorf("%d messages: %s, want %s", n, got, want)
		}
	}
}

// TestThinkingThatUpstreamDrops: the judge treats reasoning that upstream dropped as not forwarded, and all other reasoning as forwarded.
func TestThinkingThatUpstreamDrops(t *testing.T) {
	said := func(signature string) string {
		return `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"` + signature + `"},{"type":"text","text":"Yes."}]}`
	}
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Go."},` + said("s1") + `,{"role":"user","content":"On."},` + said("s2") + `,{"role":"user","content":"On."}]}`
	for want, dropped := range [][]string{2: {}, 1: {"s2"}, 0: {"s1", "s2"}} {
		got := 0
		all, err := toChat(anthropic{}.Dialect(), []byte(body), dropped...)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			got += len(readMessage(m).Blocks)
		}
		if got != want {
			t.Errorf("%v dropped: %d messages think, want %d", dropped, got, want)
		}
	}
}
