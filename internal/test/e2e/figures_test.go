package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestFiguresOfAnAnswerAgree: the headers and the notice of an answer have the same figures, also where upstream counts more or fewer tokens
// than we do.
func TestFiguresOfAnAnswerAgree(t *testing.T) {
	t.Parallel()
	const limits = ", trigger: limits, max_tokens: 6000, min_tokens: 0"
	for name, condenser := range map[string]string{
		"excerpts":  "type: excerpts" + limits,
		"summaries": "type: llm, llm_config: cheap, wait: deadline, deadline: 1m, background_at: 0" + limits,
		"pipeline": "type: pipeline, condensers: [{type: tool_output_trim, max_event_length: 900}, {type: observation_masking, attention_window: 6}, " +
			"{type: excerpts" + limits + "}]",
	} {
		for _, divisor := range []int{2, 8} {
			t.Run(fmt.Sprint(name, ", a token is ", divisor, " bytes"), func(t *testing.T) {
				t.Parallel()
				s := newSetting(t, fakeupstream.Options{CountTokens: func(raw []byte) int { return len(raw) / divisor }, Reply: calling})
				p := serve(t, "--config", s.writeType(t, embedded(newStore(t)), condenser, "notify: true"))
				history := []json.RawMessage{
					encode(map[string]string{"role": "system", "content": strings.Repeat("You are careful. ", 40)}),
					json.RawMessage(`{"role":"user","content":"Repair the build."}`),
				}
				condensed := 0
				for n := range 60 {
					a := send(t, p, body(history))
					text, err := a.rest()
					ok(t, err)
					var answer struct {
						Choices []struct{ Message json.RawMessage }
					}
					ok(t, json.Unmarshal([]byte(text), &answer))
					id := regexp.MustCompile(`call_\d+`).FindString(text)
					output := fmt.Sprintf("stage %d: ", n) + strings.Repeat("the linker finds no symbol ", 10+n%7*10)
					history = append(history, answer.Choices[0].Message,
						encode(map[string]string{"role": "tool", "tool_call_id": id, "content": output}))
					condensed += checkFigures(t, a.Header)
				}
				if condensed < 1 {
					t.Errorf("%d condensations", condensed)
				}
			})
		}
	}
}

// checkFigures compares the figures of an answer's headers and returns how many condensations they name.
func checkFigures(t *testing.T, h http.Header) int {
	t.Helper()
	var before, after, eventsBefore, eventsAfter, events, saved int
	scan(t, h.Get("X-Dewpoint-Tokens"), "%d;%d", &before, &after)
	scan(t, h.Get("X-Dewpoint-Events"), "%d;%d", &eventsBefore, &eventsAfter)
	made := h.Values("X-Dewpoint-Condensed")
	for _, value := range made {
		var e, tokens int
		_, figures, _ := strings.Cut(value, "; ")
		scan(t, figures, "%d; %d;", &e, &tokens)
		events, saved = events+e, saved+tokens
	}
	if events > eventsBefore-eventsAfter || saved > before-after {
		t.Errorf("condensed %q, but %d events and %d tokens less were forwarded", made, eventsBefore-eventsAfter, before-after)
	}
	if want := fmt.Sprintf("%s to %s tokens", inWords(after+saved), inWords(after)); len(made) > 0 && !strings.HasSuffix(h.Get("X-Dewpoint-Notice"), want) {
		t.Errorf("notice %q, want %q: %q, %q", h.Get("X-Dewpoint-Notice"), want, h.Get("X-Dewpoint-Tokens"), made)
	}
	return len(made)
}

func scan(t *testing.T, text, format string, into ...any) {
	t.Helper()
	if _, err := fmt.Sscanf(text, format, into...); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// inWords formats a number of tokens as notices do.
func inWords(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 9950:
		return fmt.Sprintf("%.1fk", float64((n+50)/100)/10)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}
