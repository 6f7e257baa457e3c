package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestConcurrentClientsNeverShareMessages has many concurrent clients, each with its own conversation, which grows and is condensed. Some leave early now and then. None
// may get, or be summarised with, another's messages.
func TestConcurrentClientsNeverShareMessages(t *testing.T) {
	const clients, steps = 8, 6
	r := condensing(t, setup{upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "DISCUSSED: " + topicOf(req.Text()), ChunkRunes: 40}
	}}})
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() { r.converse(fmt.Sprintf("topic%02d", i), steps) })
	}
	work.Wait()
	for _, req := range r.up.Requests() {
		text := string(req.Body)
		if topic := topicOf(text); strings.Count(text, "topic") != strings.Count(text, topic) {
			t.Errorf("request %d is not of one conversation only: %s", req.Index, text)
		}
		if req.Refused != nil {
			t.Errorf("request %d was refused: %v", req.Index, req.Refused)
		}
	}
	if r.up.SummariserCalls() < clients {
		t.Errorf("%d calls of the summariser: not all were condensed", r.up.SummariserCalls())
	}
}

// topicOf returns the first topic that a text names.
func topicOf(text string) string {
	_, after, _ := strings.Cut(text, "topic")
	return "topic" + after[:min(2, len(after))]
}

// converse plays one client. It sends every third request on a connection that it closes at once.
func (r *rig) converse(topic string, steps int) {
	for step := range steps {
		body := messages(turns(topic, 2*step+5)...)
		if step%2 == 1 {
			body = strings.Replace(body, "{", `{"stream":true,`, 1)
		}
		if step%3 == 2 {
			w := r.dial()
			w.post(body)
			w.Close()
		}
		resp, err := r.client.Do(r.request(r.t.Context(), http.MethodPost, chatPath, body))
		if err != nil {
			r.t.Errorf("%s, step %d: %v", topic, step, err)
			return
		}
		answer := drain(r.t, resp)
		if resp.StatusCode != http.StatusOK || topicOf(answer) != topic {
			r.t.Errorf("%s, step %d: status %d, %s", topic, step, resp.StatusCode, answer)
		}
	}
}
