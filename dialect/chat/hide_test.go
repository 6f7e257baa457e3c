package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
)

// TestFinishReasonWithoutHiddenCalls: if all calls of an answer are hidden, the finish reason for the client does not announce calls. Upstream
// is asked again only if the answer was not cut off and has no calls for the client.
func TestFinishReasonWithoutHiddenCalls(t *testing.T) {
	for name, c := range map[string]struct {
		tools        []string // that the answer calls
		finish, want string
		again        bool
	}{
		"no calls":          {nil, "stop", "stop", false},
		"a hidden one":      {[]string{"recall"}, "tool_calls", "stop", true},
		"one that is shown": {[]string{"read"}, "tool_calls", "tool_calls", false},
		"both":              {[]string{"recall", "read"}, "tool_calls", "tool_calls", false},
		"cut off":           {[]string{"recall"}, "length", "length", false},
		"filtered":          {[]string{"recall"}, "content_filter", "content_filter", false},
	} {
		var calls []string
		for i, tool := range c.tools {
			calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":%q,"arguments":"{}"}}`, i, i, tool))
		}
		message := fmt.Sprintf(`{"role":"assistant","content":"So.","tool_calls":[%s]}`, strings.Join(calls, ","))
		whole := fmt.Sprintf(`{"choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, message, c.finish)
		stream := fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n"+
			"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", message, c.finish)
		for streamed, answer := range map[bool]string{false: whole, true: stream} {
			f := chat.New(chat.Options{}).FilterAnswers(streamed, func(tool string) bool { return tool == "recall" })
			got := string(f.Write([]byte(answer)))
			said := f.Close()
			got += string(f.Finish())
			if n := strings.Count(got, fmt.Sprintf(`"finish_reason":%q`, c.want)); n != 1 || strings.Contains(got, "recall") {
				t.Errorf("%s, streamed %t: got %s", name, streamed, got)
			}
			if said.OnlyHidden() != c.again {
				t.Errorf("%s, streamed %t: said %+v", name, streamed, said)
			}
		}
	}
}

// TestTextsBeforeHiddenCalls: the client gets the texts of all answers.
func TestTextsBeforeHiddenCalls(t *testing.T) {
	f := chat.New(chat.Options{}).FilterAnswers(false, func(tool string) bool { return tool == "recall" })
	for i, text := range []string{"one ", "two ", "three"} {
		if i > 0 {
			f.Next()
		}
		f.Write(fmt.Appendf(nil, `{"choices":[{"message":{"role":"assistant","content":%q,"tool_calls":[{"id":"c","function":{"name":"recall"}}]}}]}`, text))
		f.Close()
	}
	for what, got := range map[string][]byte{"the answer": f.Finish(), "its echo": f.Echo()} {
		if !strings.Contains(string(got), `"content":"one two three"`) {
			t.Errorf("%s is %s", what, got)
		}
	}
}
