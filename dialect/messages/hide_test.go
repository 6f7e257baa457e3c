package messages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

func hides(tool string) bool { return tool == "recall" }

// TestRenumberingIgnoresTextLikeData renumbers a block whose text looks like a line of the stream.
func TestRenumberingIgnoresTextLikeData(t *testing.T) {
	s := messages.New(split.Options{}).FilterAnswers(true, hides)
	var got strings.Builder
	for _, event := range []string{
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"recall\",\"input\":{}}}\n\n",
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"data: x\"}}\n\n",
	} {
		got.Write(s.Write([]byte(event)))
	}
	const want = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"data: x\"}}\n\n"
	if got.String() != want {
		t.Errorf("got\n%s", &got)
	}
}

// TestShownWithoutUsage checks that the text of earlier answers is kept if upstream reports no usage.
func TestShownWithoutUsage(t *testing.T) {
	s := messages.New(split.Options{}).FilterAnswers(false, hides)
	s.Write([]byte(`{"content":[{"type":"text","text":"one"},{"type":"tool_use","id":"a","name":"recall","input":{}}],"stop_reason":"tool_use"}`))
	s.Close()
	s.Next()
	s.Write([]byte(`{"content":[{"type":"text","text":"two"}],"stop_reason":"end_turn"}`))
	s.Close()
	const want = `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"stop_reason":"end_turn"}`
	if got := string(s.Finish()); got != want {
		t.Errorf("got %s", got)
	}
}

// TestStopReasonWithoutHiddenCalls: if all calls of an answer are hidden, the stop reason for the client is not a call.
func TestStopReasonWithoutHiddenCalls(t *testing.T) {
	for name, c := range map[string]struct {
		tools      []string // that the answer calls
		stop, want string
		again      bool // upstream is asked again
	}{
		"no calls":          {nil, "end_turn", "end_turn", false},
		"a hidden one":      {[]string{"recall"}, "tool_use", "end_turn", true},
		"two hidden ones":   {[]string{"recall", "recall"}, "tool_use", "end_turn", true},
		"one that is shown": {[]string{"read"}, "tool_use", "tool_use", false},
		"both":              {[]string{"recall", "read"}, "tool_use", "tool_use", false},
		"cut off":           {[]string{"recall"}, "max_tokens", "max_tokens", false},
	} {
		var blocks []string
		stream := ""
		for i, tool := range c.tools {
			block := fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":%q,"input":{}}`, i, tool)
			blocks = append(blocks, block)
			stream += fmt.Sprintf("data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}\n\n"+
				"data: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i, block, i)
		}
		stream += fmt.Sprintf("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":%q}}\n\ndata: {\"type\":\"message_stop\"}\n\n", c.stop)
		whole := fmt.Sprintf(`{"content":[%s],"stop_reason":%q}`, strings.Join(blocks, ","), c.stop)
		for streamed, answer := range map[bool]string{false: whole, true: stream} {
			f := messages.New(split.Options{}).FilterAnswers(streamed, hides)
			got := string(f.Write([]byte(answer)))
			if again := f.Close().OnlyHidden(); again != c.again {
				t.Errorf("%s, streamed %t: upstream is asked again: %t", name, streamed, again)
			}
			got += string(f.Finish())
			if n := strings.Count(got, fmt.Sprintf(`"stop_reason":%q`, c.want)); n != 1 || strings.Count(got, "stop_reason") != 1 {
				t.Errorf("%s, streamed %t: got %s", name, streamed, got)
			}
		}
	}
}

// TestInvalidHiddenInputIsNotSentBack: if the arguments of a hidden call are not JSON, the call is sent back to upstream without them, since upstream
// would refuse the message.
func TestInvalidHiddenInputIsNotSentBack(t *testing.T) {
	for partial, want := range map[string]string{`{\"q\":1}`: `{"q":1}`, `{\"q\":`: `{}`} {
		f := messages.New(split.Options{}).FilterAnswers(true, hides)
		f.Write([]byte(`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"recall","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + partial + `"}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":0}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n\n"))
		if said := f.Close(); len(said.Calls) != 1 || said.Calls[0].Arguments != want || !strings.Contains(string(said.Message), `"input":`+want) {
			t.Errorf("%s: said %+v, %s", partial, said.Calls, said.Message)
		}
	}
}

// TestUsageOfSeveralAnswers: if several answers become one, the client receives the sum of their usage, in a stream too.
func TestUsageOfSeveralAnswers(t *testing.T) {
	f := messages.New(split.Options{}).FilterAnswers(true, hides)
	for i, stop := range []string{"tool_use", "end_turn"} {
		if i > 0 {
			f.Next()
		}
		call := `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"recall","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":0}` + "\n\n"
		got := string(f.Write([]byte(`data: {"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}` + "\n\n" + call[:len(call)*(1-i)] +
			`data: {"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":{"output_tokens":20}}` + "\n\n")))
		f.Close()
		if got += string(f.Finish()); i == 1 && !strings.Contains(got, `"usage":{"input_tokens":20,"output_tokens":40}`) {
			t.Errorf("got %s", got)
		}
	}
}

// TestStoredHistoryHidesNoTools: no tools are hidden if upstream stores the history, which would contain a call that the client does not
// know.
func TestStoredHistoryHidesNoTools(t *testing.T) {
	for member, want := range map[string]bool{``: true, `,"thread":{"type":"create"}`: false, `,"thread":null`: true} {
		r := splitOf(t, `{"tools":[{"name":"read"}],"messages":[{"role":"user","content":"a"}]`+member+`}`)
		if got := messages.New(split.Options{}).CanHideTools(r); got != want {
			t.Errorf("%s: %t", member, got)
		}
	}
}
