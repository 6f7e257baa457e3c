package e2e

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

// checkFile stops a proxy and checks the log in its file.
func checkFile(t testing.TB, p *process, path, thread string, run replay.Run) {
	t.Helper()
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	store, err := boltstore.Open(boltstore.Options{Path: path, Content: true})
	ok(t, err)
	defer store.Close()
	checkLog(t, store, session.ThreadID(thread), run)
}

// checkRedis checks the proxies' log in Redis.
func checkRedis(t testing.TB, addr, thread string, run replay.Run) {
	t.Helper()
	store := records.New(redisstore.Open(redisstore.Options{Addrs: []string{addr}, Timeout: patience}), records.Options{Content: true})
	defer store.Close()
	checkLog(t, store, session.ThreadID(thread), run)
}

// checkLog checks that a thread's log has every message of the run once, in order, byte for byte.
func checkLog(t testing.TB, store session.Store, id session.ThreadID, run replay.Run) {
	t.Helper()
	want := chained(t, run.Messages)
	thread, err := store.Thread(t.Context(), id)
	ok(t, err)
	if thread.Len != len(want) {
		t.Errorf("thread of %d messages, want %d", thread.Len, len(want))
	}
	logged, err := store.Events(t.Context(), id, 1, 10*len(want))
	ok(t, err)
	pos := 0
	for _, e := range logged {
		if e.Pos == 0 {
			continue // a system message or a condensation
		}
		pos++
		if e.Pos != pos || pos > len(want) || !bytes.Equal(e.Payload, want[pos-1]) {
			t.Fatalf("entry %d is position %d, want %d: %.200s", e.Seq, e.Pos, pos, e.Payload)
		}
	}
	if pos != len(want) {
		t.Errorf("%d messages logged, want %d", pos, len(want))
	}
}

// chained returns the messages with a position: all except system messages.
func chained(t testing.TB, messages []json.RawMessage) []json.RawMessage {
	t.Helper()
	var out []json.RawMessage
	for _, raw := range messages {
		var m struct{ Role string }
		ok(t, json.Unmarshal(raw, &m))
		if m.Role != "system" && m.Role != "developer" {
			out = append(out, raw)
		}
	}
	return out
}
