package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// tenants writes a configuration of two tenants, the second of which condenses above max events.
func (s *setting) tenants(store string, max int, more string) string {
	key := func(k string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(k))) }
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q, api_key: upstream-key}
store: {type: embedded, path: %q}
llms: {cheap: {model: %s}}
condenser: {type: noop}
tenants:
  - {name: one, api_keys: [{sha256: %s}]}
  - {name: two, api_keys: [{sha256: %s}], condenser: {type: llm, llm_config: cheap, wait: deadline, background_at: 0, max_size: %d, min_tokens: 0}}
%s`, s.url, store, replay.Summariser, key("key-one"), key("key-two"), max, more)
}

// ask sends the sample's first n messages as a tenant, and gives what was done about it.
func ask(t testing.TB, p *process, key string, n int) (condensed string, status int) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.url()+"/chat/completions", bytes.NewReader(body(demo.Sample().Messages[:n])))
	ok(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	ok(t, err)
	return resp.Header.Get("X-Dewpoint-Condensed"), resp.StatusCode
}

// TestReload runs two tenants with different condensers, and changes one of them by file and by signal while requests
// are under way: none is lost, a bad configuration changes nothing, and a good one takes effect.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Keep: 64})
	store := newStore(t)
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.tenants(store, 100, ""))
	write := func(text string) { ok(t, os.WriteFile(file, []byte(text), 0o600)) }
	p := serve(t, "--config", file)

	var stop atomic.Bool
	var load sync.WaitGroup
	for _, key := range []string{"key-one", "key-two"} {
		load.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if _, status := ask(t, p, key, 4+2*(i%8)); status != http.StatusOK {
					t.Errorf("%s: status %d", key, status)
				}
			}
		})
	}
	defer load.Wait()
	defer stop.Store(true)

	write(s.tenants(store, 100, "condensor: {}\n"))
	if e := p.await("configuration not reloaded: the last good one stays"); !strings.Contains(p.log.String(), "condensor") {
		t.Errorf("the log does not say why: %+v", e)
	}
	if condensed, status := ask(t, p, "key-two", 40); condensed != "" || status != http.StatusOK {
		t.Errorf("after a bad reload: %q, %d", condensed, status)
	}
	write(s.tenants(store, 20, ""))
	p.await("configuration reloaded")
	if condensed, _ := ask(t, p, "key-two", 42); !strings.HasPrefix(condensed, "events") {
		t.Errorf("tenant two is not condensed after the reload: %q", condensed)
	}
	if condensed, _ := ask(t, p, "key-one", 42); condensed != "" {
		t.Errorf("tenant one is condensed: %q", condensed)
	}
	if _, status := ask(t, p, "key-three", 4); status != http.StatusUnauthorized {
		t.Errorf("a stranger gets %d", status)
	}
}

// TestReloadBySignal: SIGHUP reads the file again, and names what needs a restart.
func TestReloadBySignal(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	store := newStore(t)
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.tenants(store, 100, ""))
	p := serve(t, "--config", file)
	ok(t, p.command.Process.Signal(syscall.SIGHUP))
	p.await("configuration reloaded")
	ok(t, os.WriteFile(file, []byte(s.tenants(store, 100, "log: {level: debug}\n")), 0o600))
	p.await("this key takes effect at the next start")
}
