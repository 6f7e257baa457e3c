package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestChangedFirstMessageCostsNoSummaries has clients that change their history: a clock in the first message, truncated old results, or
// both. Two proxies serve them in turn, and call the summariser no more often than for a client that changes nothing.
func TestChangedFirstMessageCostsNoSummaries(t *testing.T) {
	config := inRedis(sessiontest.StartRedis(t).Addr)
	calls := map[string]int{}
	for _, c := range []struct {
		name       string
		clock, cut bool
	}{{name: "nothing"}, {name: "a clock", clock: true}, {name: "old results", cut: true}, {name: "both", clock: true, cut: true}} {
		if testing.Short() && c.clock != c.cut {
			continue
		}
		s := newSetting(t, fakeupstream.Options{})
		file := s.config(t, config)
		pair := [2]*process{serve(t, "--config", file), serve(t, "--config", file)}
		run := demo.Sample()
		sessions := map[string]bool{}
		for end := 2; end <= len(run.Messages); end += 2 {
			messages := slices.Clone(run.Messages[:end])
			messages[1] = encode(map[string]string{"role": "user", "content": c.name + ": put the stock right."})
			if c.clock {
				messages[1] = encode(map[string]string{"role": "user", "content": fmt.Sprintf("It is %d o'clock. Put the stock right.", end)})
			}
			for i := 3; c.cut && i < end-24; i += 2 {
				messages[i] = withContent(t, messages[i], "[Old result cut]")
			}
			a := send(t, pair[end/2%2], body(messages), http.Header{"Authorization": {"Bearer " + c.name}})
			ok(t, a.finish())
			sessions[a.Header.Get("X-Dewpoint-Session")] = true
		}
		if calls[c.name] = s.Upstream.SummariserCalls(); calls[c.name] != calls["nothing"] || calls[c.name] < 3 {
			t.Errorf("%s changes: %d calls of the summariser, %d where nothing does", c.name, calls[c.name], calls["nothing"])
		}
		if len(sessions) > 2 { // a first message that changes before it is answered cannot be linked to the session
			t.Errorf("%s changes: %d sessions", c.name, len(sessions))
		}
	}
}

// withContent returns a message with another content.
func withContent(t *testing.T, message json.RawMessage, content string) json.RawMessage {
	t.Helper()
	var fields map[string]any
	ok(t, json.Unmarshal(message, &fields))
	fields["content"] = content
	return encode(fields)
}

// TestChangedFirstMessageDoesNotFillTheStore: if a client begins a thread with each request, each message is stored about once, and each thread can be
// shown completely.
func TestChangedFirstMessageDoesNotFillTheStore(t *testing.T) {
	s, path := newSetting(t, fakeupstream.Options{}), newStore(t)
	p := serve(t, "--config", s.configAt(t, embedded(path), 1000))
	var said []json.RawMessage
	var last *answer
	sent := 0
	for step := range 60 {
		head := encode(map[string]string{"role": "user", "content": fmt.Sprintf("It is %d o'clock. Put the stock right.", step)})
		request := body(append([]json.RawMessage{head}, said...))
		last = send(t, p, request, http.Header{"X-Dewpoint-Session": {"clock"}})
		ok(t, last.finish())
		sent += len(request)
		for _, m := range callsAndResults(3 * step) { // one call each
			said = append(said, encode(m))
		}
		var noise [4096]byte
		_, _ = rand.NewChaCha8([32]byte{byte(step)}).Read(noise[:])
		said[len(said)-1] = withContent(t, said[len(said)-1], hex.EncodeToString(noise[:]))
	}
	p.viewIsForwarded(s, fmt.Sprintf("/sessions/%s/threads/%s", last.Header.Get("X-Dewpoint-Session"), last.Header.Get("X-Dewpoint-Thread")))
	p.terminate()
	p.wait()
	info, err := os.Stat(path)
	ok(t, err)
	if size := info.Size(); size > int64(sent)/2 {
		t.Errorf("the store takes %d KB for %d KB of requests, which repeat %d KB", size>>10, sent>>10, len(body(said))>>10)
	}
	t.Logf("%d KB of %d KB", info.Size()>>10, sent>>10)
}
