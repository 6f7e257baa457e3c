package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// Messages is how many messages the history has.
func (h *History) Messages() int { return len(h.ends) }

// Message is the raw JSON of one message.
func (h *History) Message(i int) []byte {
	from := 0
	if i > 0 {
		from = h.ends[i-1] + 1
	}
	return h.joined[from:h.ends[i]]
}

// refusal returns why OpenAI would refuse a request, or nil.
func refusal(body []byte) *fakeupstream.APIError {
	up := fakeupstream.New(fakeupstream.Options{})
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	up.ServeHTTP(httptest.NewRecorder(), r)
	return up.Requests()[0].Refused
}

// TestHistories: bodies are what OpenAI takes, about as long as they should be, and made of many messages.
func TestHistories(t *testing.T) {
	for _, size := range sizes() {
		if testing.Short() && size > 1_000_000 {
			continue
		}
		h := NewHistory(Plan{Size: size, Steps: 3})
		if h.Steps() != 3 {
			t.Errorf("%s: %d steps", sizeName(size), h.Steps())
		}
		for _, step := range []int{0, 3} {
			for _, stream := range []bool{false, true} {
				body := h.Step(step, stream)
				if err := refusal(body); err != nil {
					t.Fatalf("%s, step %d: %v", sizeName(size), step, err)
				}
				if n := float64(len(body)) / float64(size); n < 0.6 || n > 1.4 {
					t.Errorf("%s, step %d: %d bytes", sizeName(size), step, len(body))
				}
			}
		}
		if mean := size / h.Messages(); mean < 400 || mean > 2500 {
			t.Errorf("%s: %d messages", sizeName(size), h.Messages())
		}
		if !bytes.Equal(h.Step(1, false), NewHistory(Plan{Size: size, Steps: 3}).Step(1, false)) {
			t.Errorf("%s: another text each time", sizeName(size))
		}
	}
}

// TestTextCostsWhatAgentsReadCosts: recorded runs of agents, and captured requests, have 3.6 to 3.8 bytes a token.
func TestTextCostsWhatAgentsReadCosts(t *testing.T) {
	encoder, err := tokenize.New().Encoder(tokenize.O200k)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(Plan{Size: 1_000_000})
	size, tokens := 0, 0
	for i := range h.Messages() {
		c, err := chat.New(chat.Options{}).Read(h.Message(i))
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{c.Text}
		for _, call := range c.Calls {
			texts = append(texts, call.Arguments)
		}
		for _, text := range texts {
			size, tokens = size+len(text), tokens+encoder.Count(text)
		}
	}
	if each := float64(size) / float64(tokens); each < 3.5 || each > 3.9 {
		t.Errorf("%.2f bytes a token", each)
	} else {
		t.Logf("%.2f bytes a token", each)
	}
}

// TestForksDiffer: forks share no message but the system prompt, and stay valid.
func TestForksDiffer(t *testing.T) {
	h := NewHistory(Plan{Size: 10_000, Steps: 2})
	a, b := h.Fork(1), h.Fork(2)
	for i := range h.Messages() {
		if same := bytes.Equal(a.Message(i), b.Message(i)); same != (i == 0) {
			t.Errorf("message %d: %s", i, a.Message(i))
		}
		if !json.Valid(a.Message(i)) || len(a.Message(i)) != len(h.Message(i)) {
			t.Errorf("message %d: %s", i, a.Message(i))
		}
	}
	if err := refusal(a.Step(2, false)); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(a.Step(1, false), h.Fork(1).Step(1, false)) {
		t.Error("a fork is another one each time")
	}
}

// TestProtocols holds that the histories are valid in the other protocols.
func TestProtocols(t *testing.T) {
	s := fakeupstream.New(fakeupstream.Options{Strict: true})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, api := range apis() {
		body := NewHistory(Plan{Size: 20_000, Steps: 3, API: api}).Fork(1).Step(2, false)
		req, err := http.NewRequest(http.MethodPost, s.URL()+api.path(), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if said, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s (%v)", api, resp.Status, said, err)
		}
	}
}
