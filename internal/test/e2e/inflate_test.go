package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestALogThatInflates: with each request, a client logs a message of 8 MiB of spaces, which takes a few bytes in the store. A small request
// that forks the conversation, and an operator's request for a page of it, read only a few of these messages.
func TestALogThatInflates(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full sends some hundred MiB; the tests of session bound what a small log may take")
	}
	t.Parallel()
	const messages, large = 16, 8 << 20
	up := fakeupstream.New(fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "fine"}
	}})
	ok(t, up.Start())
	t.Cleanup(up.Close)
	p := serve(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", up.URL()+"/v1", "--store", t.TempDir()+"/a.db")
	client := http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(history ...json.RawMessage) http.Header {
		t.Helper()
		all := [][]byte{}
		for _, m := range history {
			all = append(all, m)
		}
		text := fmt.Sprintf(`{"model":"gpt-4o","messages":[%s]}`, bytes.Join(all, []byte{','}))
		resp, err := client.Post(p.url()+"/chat/completions", "application/json", bytes.NewReader([]byte(text)))
		ok(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		ok(t, err)
		ok(t, resp.Body.Close())
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %s", resp.Status)
		}
		return resp.Header
	}
	var history []json.RawMessage
	for i := range messages {
		m := spoken(i)
		padded := bytes.Replace(m, []byte{'{'}, append([]byte{'{'}, bytes.Repeat([]byte{' '}, large)...), 1)
		ask(append(history[:i:i], padded)...)
		history = append(history, m)
	}
	head := ask(history...)
	few := func(what string, read func()) {
		t.Helper()
		before := p.spent().bytes
		read()
		if n := p.spent().bytes - before; n > 5*large {
			t.Errorf("%s: %.0f MiB allocated", what, n/(1<<20))
		}
	}
	few("a fork", func() {
		ask(append(history[:2:2], spoken(messages))...)
		p.threadsBegun(2)
	})
	path := "/sessions/" + head.Get("X-Dewpoint-Session") + "/threads/" + head.Get("X-Dewpoint-Thread")
	few("a page of events", func() { p.administer(http.MethodGet, path+"/events?limit=500", http.StatusOK) })
}
