package messages_test

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

func hides(tool string) bool { return tool == "recall" }

// TestNumberedTextOfData renumbers a block whose text looks like a line of the stream.
func TestNumberedTextOfData(t *testing.T) {
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
