package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// history expands a shorthand for messages: s u g are texts, aX is an action with call X, oX its result, [text] a summary.
func history(t *testing.T, short string) (body []byte, messages []json.RawMessage) {
	t.Helper()
	for i, w := range strings.Fields(short) {
		var m string
		switch w[0] {
		case 's':
			m = fmt.Sprintf(`{"role":"system","content":"%s"}`, w)
		case 'u':
			m = fmt.Sprintf(`{"role":"user","content":"%s"}`, w)
		case 'g':
			m = fmt.Sprintf(`{"role":"assistant","content":"%s"}`, w)
		case 'a':
			m = fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"%s","type":"function","function":{"name":"f","arguments":"{}"}}]}`, w[1:])
		case 'o':
			m = fmt.Sprintf(`{"role":"tool","tool_call_id":"%s","content":"result"}`, w[1:])
		case '[':
			text, err := json.Marshal(record.Summary{Record: strings.Trim(w, "[]")}.String())
			if err != nil {
				t.Fatal(err)
			}
			m = fmt.Sprintf(`{"role":"user","content":%s}`, text)
		default:
			t.Fatalf("message %d: %q", i, w)
		}
		messages = append(messages, json.RawMessage(m))
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	return body, messages
}

// exchange is one step as the judge sees it.
func exchange(t *testing.T, number int, sent, forwarded string, condensed ...string) observed {
	t.Helper()
	body, messages := history(t, sent)
	up, got := history(t, forwarded)
	o := observed{
		Step: Step{Number: number, Events: len(messages), Forwarded: len(got), forwarded: got, condensed: condensed, Tokens: "100;50"},
		sent: body, messages: messages, main: fakeupstream.Request{Body: up, Messages: got},
		got: json.RawMessage(`{"content":"x"}`), want: json.RawMessage(`{"content":"x"}`),
	}
	if len(condensed) > 0 {
		o.Condensed = condensed[0]
	}
	return o
}

// TestJudgeReportsEachDefect shows the judge one defect at a time. The judge must report this defect, and no other.
func TestJudgeReportsEachDefect(t *testing.T) {
	const done = "events; 3; 40; summary"
	f := func(want string, steps ...observed) {
		t.Helper()
		j := &judge{expect: Expectations{MaxSize: 6, Summarisers: []string{"small"}}}
		for _, o := range steps {
			j.step(o)
		}
		var got []string
		for _, v := range j.violations {
			got = append(got, v.Error())
		}
		all := strings.Join(got, "\n")
		if want == "" && all != "" || want != "" && (len(got) != 1 || !strings.Contains(all, want)) {
			t.Errorf("want %q, got:\n%s", want, all)
		}
	}
	ok := exchange(t, 1, "s u a1 o1 a2 o2 a3 o3", "s u [x] a3 o3", done)
	f("", exchange(t, 0, "s u a1 o1", "s u a1 o1"))
	f("", ok)
	f("", ok, exchange(t, 2, "s u a1 o1 a2 o2 a3 o3 g", "s u [x] a3 o3 g"))

	changed := exchange(t, 0, "s u a1 o1", "s u a1 o1")
	changed.main.Body = append([]byte(" "), changed.main.Body...)
	f("untouched below thresholds", changed)
	answer := exchange(t, 0, "s u", "s u")
	answer.got = json.RawMessage(`{"content":"y"}`)
	f("answer was changed", answer)
	refused := exchange(t, 0, "s u", "s u")
	refused.main.Refused = &fakeupstream.APIError{Message: "no"}
	f("upstream refused", refused)
	f("not a summary", exchange(t, 0, "s u", "s u2 u"))
	f("were split", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u [x] a2 a3 o3", done))
	f("system messages survive: message 0", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "u [x] a3 o3", done))
	f("user message 1 is gone", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s [x] a3 o3", done))
	f("the last unit, at 6, is gone", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u [x] a2 o2", done))
	f("before the tool result at 4", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u a3 [x] o3", done))
	f("3 condensations", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u [x] a3 o3", done, done, done))
	f("not above 6", exchange(t, 0, "s u a1 o1 g", "s u [x] g", done))
	f("forwarded 8 events", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u a1 o1 a2 o2 a3 o3"))
	f("smaller", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u [x] a3 o3", "events; 3; -4; summary"))
	f("condensed without a summary", exchange(t, 0, "s u a1 o1 a2 o2 a3 o3", "s u a3 o3", done))
	f("changed without a condensation", ok, exchange(t, 2, "s u a1 o1 a2 o2 a3 o3 g", "s u [y] a3 o3 g"))
	f("without a condensation", ok, exchange(t, 2, "s u a1 o1 a2 o2 a3 o3 g", "s u [x] g"))

	again := exchange(t, 1, "s u a1 o1 a2 o2 a3 o3", "s u [y] a3 o3")
	again.again = true
	f("forwarded differently", ok, again)
	again = ok
	again.again, again.own = true, []fakeupstream.Request{{Model: "small"}}
	f("called the summariser", ok, again)

	own := ok
	own.own = []fakeupstream.Request{{Model: "large"}}
	f(`model "large"`, own)
	own.own = []fakeupstream.Request{{Model: "small", Tools: json.RawMessage(`[{"a":1}]`)}}
	f("client's tools", own)
	next := exchange(t, 2, "s u a1 o1 a2 o2 a3 o3 a4 o4", "s u [z] a4 o4", done)
	next.own = []fakeupstream.Request{{Model: "small"}}
	f("not sent the whole previous summary", ok, next)
	idle := exchange(t, 0, "s u", "s u")
	idle.own = []fakeupstream.Request{{Model: "small"}}
	f("nothing was condensed", idle)
}

// TestLaterSystem: system messages do not count as events, except for those at the beginning.
func TestLaterSystem(t *testing.T) {
	for short, want := range map[string]int{"": 0, "s s u g": 0, "s u s g u s s": 3, "u g": 0} {
		if _, messages := history(t, short); laterSystem(messages) != want {
			t.Errorf("%s: %d, want %d", short, laterSystem(messages), want)
		}
	}
}
