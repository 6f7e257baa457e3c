package messages_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestPlacesSystemMessages joins what is left of histories with system messages in between. The API accepts them only after a user message,
// or after the result of a server's tool, and in front of an answer or at the end.
func TestPlacesSystemMessages(t *testing.T) {
	d := messages.New(split.Options{})
	elements := map[rune]string{
		'U': `{"role":"user","content":"u"}`, 'R': `{"type":"tool_result","tool_use_id":"t"}`, 'B': `{"type":"text","text":"b"}`,
		'A': `{"role":"assistant","content":"a"}`,
		'P': `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}`,
		'1': `{"role":"system","content":"1"}`, '2': `{"content":[{"type":"text","text":"2"}],"role":"system"}`,
		'E': `{"role":"system","content":[],"output_config":{"effort":"low"}}`,
		'N': `{"role":"system","clear_at":"next_user_message","content":"n"}`,
	}
	letters := []string{`{"role":"user","content":[`, "", "]}", "", ",", ""} // around blocks, and between messages
	for letter, element := range elements {
		letters = append([]string{element, string(letter)}, letters...)
	}
	order := strings.NewReplacer(letters...)
	f := func(name, from, want string) {
		t.Helper()
		all := [][]byte{[]byte(`"s"`)}
		for _, letter := range from {
			all = append(all, []byte(elements[letter]))
		}
		r := splitOf(t, `{"messages":[{"role":"user","content":"u"}],"system":"s"}`)
		body := string(slices.Concat(d.Join(r, all)...))
		body = strings.TrimSuffix(strings.TrimPrefix(body, `{"messages":[`), `],"system":"s"}`)
		if got := order.Replace(body); got != want {
			t.Errorf("%s: %s became %s, want %s", name, from, got, want)
		}
	}
	same := func(name, all string) { t.Helper(); f(name, all, all) }
	same("none", "UAURA")
	same("as clients send them", "U1AU2AU1")
	same("several together", "U12AU1E2A")
	same("after results", "UAR1ARB2")
	same("after a server's result", "UP1AU")
	same("without content", "EUAEU1EA")
	same("until the next user message", "UNAURNAUN")
	f("after a record", "U1U2AU1", "UU12AU1")
	f("before a user message", "UU1U2A", "UUU12A")
	f("before a result", "UA1R2A", "UAR12A")
	f("between answers", "UA1AUA", "UAAU1A")
	f("one without content on the way", "U1U2EUA", "UUU12EA")
	f("the last", "UA1U", "UAU1")
	f("already passed", "UUN1NRNA", "UUR1NA")
}
