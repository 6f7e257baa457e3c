package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestAChangedHeadCostsNothing has clients that change their history: a clock in the first message, truncated old results, or
// both. Two proxies serve them in turn, and call the summariser no more often than for a client that changes nothing.
func TestAChangedHeadCostsNothing(t *testing.T) {
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
		if len(sessions) > 2 { // a first message that changes before it is answered has no link to the session
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
