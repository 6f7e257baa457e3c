package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestErasedContentLeavesTheFile deletes a conversation of each protocol and compacts the store. The file, which showed what the users wrote,
// shows nothing of it any more. A conversation that was not deleted stays.
func TestErasedContentLeavesTheFile(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	store := newStore(t)
	p := serve(t, "--config", s.config(t, embedded(store)))
	shows := func(words string) bool {
		return bytes.Contains(storedText(t, store), []byte(words))
	}
	generator := rand.New(rand.NewPCG(1, 2))
	said := map[string]string{} // by session
	var stays string
	for _, c := range []struct{ path, body string }{
		{"/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`},
		{"/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`},
		{"/responses", `{"model":"gpt-4o","input":[{"role":"user","content":%q}]}`},
		{"/messages", `{"model":"gpt-4o","max_tokens":99,"messages":[{"role":"user","content":%q}]}`},
	} {
		words := fmt.Sprintf("%x%x", generator.Uint64(), generator.Uint64())
		a := sendTo(t, p, c.path, fmt.Appendf(nil, c.body, words))
		ok(t, a.finish())
		said[a.Header.Get("X-Dewpoint-Session")] = words
		stays = cmp.Or(stays, words)
		for end := time.Now().Add(patience); !shows(words); {
			if time.Now().After(end) {
				t.Fatalf("%s: the file never shows what the user wrote: there is nothing to test", c.path)
			}
		}
	}
	for id, words := range said {
		if words == stays {
			continue
		}
		p.administer(http.MethodDelete, "/sessions/"+id, http.StatusNoContent)
	}
	p.administer(http.MethodPost, "/compact", http.StatusNoContent)
	for id, words := range said {
		if got := shows(words); got != (words == stays) {
			t.Errorf("session %s is in the file: %t", id, got)
		}
		if words == stays {
			p.administer(http.MethodGet, "/sessions/"+id, http.StatusOK)
		}
	}
	if len(said) != 4 {
		t.Errorf("%d sessions", len(said))
	}
}
