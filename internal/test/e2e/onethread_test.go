package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// TestOneThreadsContent: a summariser that fails on the content of one thread still summarises those of others with the same key.
func TestOneThreadsContent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Summarise: func(r *fakeupstream.Request) fakeupstream.Answer {
				if strings.Contains(string(r.Body), "forbidden topic") {
					return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: status, Message: "no"}}
				}
				return fakeupstream.Answer{Content: "CURRENT_STATE: it goes well"}
			}})
			p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 8))
			threads := map[string][]json.RawMessage{}
			ask := func(topic string, turns int) string {
				t.Helper()
				history := threads[topic]
				for n := range turns {
					history = append(history, encode(map[string]string{"role": "user", "content": fmt.Sprint("Tell me of the ", topic, ", part ", n, strings.Repeat(" in full", 60))}),
						encode(map[string]string{"role": "assistant", "content": fmt.Sprint("The ", topic, " has a part ", n, strings.Repeat(" and so on", 60))}))
				}
				history = append(history, encode(map[string]string{"role": "user", "content": "Go on."}))
				a := send(t, p, encode(map[string]any{"model": judge.Model, "messages": history}))
				_, err := a.rest()
				ok(t, err)
				threads[topic] = append(history, encode(map[string]string{"role": "assistant", "content": "It goes on."}))
				return a.Header.Get("X-Dewpoint-Condensed")
			}
			ask("forbidden topic", 6)
			for range 3 {
				ask("forbidden topic", 0)
			}
			if got := ask("weather", 6); !strings.HasSuffix(got, "summary") {
				t.Errorf("another thread: %q", got)
			}
		})
	}
}
