package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestRecordsAreNotStored runs a conversation that is condensed, without content in the store. Its records quote the user's words, so the file
// has them, unless store.records is false. Then the run stays condensed as long as the process lives, and after a restart it goes on and is
// condensed again.
func TestRecordsAreNotStored(t *testing.T) {
	t.Parallel()
	for condenser, settings := range map[string]string{
		"excerpts": "trigger: limits, max_size: 20, min_tokens: 0", "llm": "llm_config: cheap, trigger: limits, max_size: 20, min_tokens: 0",
	} {
		for _, records := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, records: %t", condenser, records), func(t *testing.T) {
				t.Parallel()
				s, path := newSetting(t, fakeupstream.Options{}), newStore(t)
				store := fmt.Sprintf("{type: embedded, path: %q, timeout: %s, content: false, records: %t}", path, patience, records)
				config := s.writeType(t, store, "type: "+condenser+", "+settings, "shutdown: {delay: 0s, timeout: 1m}")
				w := &wordy{t: t, p: serve(t, "--config", config)}
				condensed := 0
				for range 14 {
					condensed += w.step()
				}
				if condensed == 0 || w.forwarded >= w.received {
					t.Fatalf("condensed %d times; the last request had %d events, and %d were forwarded", condensed, w.received, w.forwarded)
				}
				if condensed > 3 {
					t.Errorf("condensed %d times in 14 steps: what was condensed is not used again", condensed)
				}
				w.p.terminate()
				w.p.wait()
				if got := bytes.Contains(storedText(t, path), []byte(w.first)); got != records {
					t.Errorf("the file has the user's words: %t", got)
				}
				w.p = serve(t, "--config", config)
				again := w.step()
				if (again > 0) == records {
					t.Errorf("after a restart, condensed %d times", again)
				}
				if w.forwarded >= w.received {
					t.Errorf("after a restart, %d of %d events were forwarded", w.forwarded, w.received)
				}
			})
		}
	}
}

// wordy is a conversation whose user writes something of his own in each message.
type wordy struct {
	t        *testing.T
	p        *process
	messages []json.RawMessage
	first    string // what the user's second message says

	received, forwarded int // events of the last request
}

// step goes on with the conversation and returns how often that condensed it.
func (w *wordy) step() int {
	w.t.Helper()
	n := len(w.messages)
	words := fmt.Sprintf("%x", rand.New(rand.NewPCG(uint64(n), 1)).Uint64())
	if n > 0 && w.first == "" {
		w.first = words
	}
	w.messages = append(w.messages, encode(map[string]string{"role": "user", "content": "Look at " + words + " please. " + strings.Repeat("It matters. ", 30)}))
	a := send(w.t, w.p, body(w.messages), http.Header{"X-Dewpoint-Session": {"wordy"}})
	ok(w.t, a.finish())
	w.messages = append(w.messages, encode(map[string]string{"role": "assistant", "content": fmt.Sprintf("Answer %d. %s", n, strings.Repeat("Done. ", 30))}))
	before, after, _ := strings.Cut(a.Header.Get("X-Dewpoint-Events"), ";")
	w.received, _ = strconv.Atoi(before)
	w.forwarded, _ = strconv.Atoi(after)
	return len(a.Header.Values("X-Dewpoint-Condensed"))
}
