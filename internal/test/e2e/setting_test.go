package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// maxSize is the number of events above which the tests' proxies condense.
const maxSize = 20

// setting holds everything that the proxies of a test share.
type setting struct {
	Upstream *fakeupstream.Server
	Aside    *fakeupstream.Server // gets the requests outside the agent's run, while aside is set
	aside    atomic.Bool
	url      string // the upstream's URL in the proxies' configuration
}

// newSetting starts the upstream. A stand-in is the summariser of both servers, unless options have another one.
func newSetting(t testing.TB, options fakeupstream.Options) *setting {
	t.Helper()
	options.Strict = true
	return newLenient(t, options)
}

// newLenient is newSetting with an upstream that accepts unknown fields and long ids, which recorded runs have.
func newLenient(t testing.TB, options fakeupstream.Options) *setting {
	t.Helper()
	options.SummariserModels = []string{judge.Summariser}
	s := &setting{Upstream: fakeupstream.New(options), Aside: fakeupstream.New(options)}
	front := httptest.NewServer(http.HandlerFunc(s.forward))
	s.url = front.URL + "/v1"
	t.Cleanup(func() {
		s.Upstream.Close() // first, since it ends delayed answers
		s.Aside.Close()
		front.CloseClientConnections()
		front.Close()
	})
	return s
}

func (s *setting) forward(w http.ResponseWriter, r *http.Request) {
	if s.aside.Load() {
		s.Aside.ServeHTTP(w, r)
		return
	}
	s.Upstream.ServeHTTP(w, r)
}

// config writes a configuration with the given store section, and returns its path.
func (s *setting) config(t testing.TB, store string) string { return s.configAt(t, store, maxSize) }

// configAt is config with a limit.
func (s *setting) configAt(t testing.TB, store string, maxSize int) string {
	t.Helper()
	return s.configEnding(t, store, maxSize, "{delay: 0s, timeout: 1m}")
}

// configEnding is configAt with a shutdown section.
func (s *setting) configEnding(t testing.TB, store string, maxSize int, shutdown string) string {
	t.Helper()
	return s.write(t, store, fmt.Sprintf("llm_config: cheap, trigger: limits, max_size: %d", maxSize), shutdown)
}

// ownModel writes a configuration in which the request's own model condenses a history above a number of events.
func (s *setting) ownModel(t testing.TB, maxSize int) string {
	t.Helper()
	return s.write(t, embedded(newStore(t)), fmt.Sprintf("trigger: limits, max_size: %d", maxSize), "{delay: 0s, timeout: 1m}")
}

func (s *setting) write(t testing.TB, store, condenser, shutdown string) string {
	t.Helper()
	return s.writeWith(t, store, condenser+", wait: deadline, deadline: 1m, background_at: 0, min_tokens: 0", "shutdown: "+shutdown)
}

// writeWith writes a configuration with these settings of the condenser and more sections.
func (s *setting) writeWith(t testing.TB, store, condenser, more string) string {
	t.Helper()
	return s.writeType(t, store, "type: llm, "+condenser, more)
}

// writeType is writeWith for a condenser of any type.
func (s *setting) writeType(t testing.TB, store, condenser, more string) string {
	t.Helper()
	return writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
condenser: {%s}
%s
`, s.url, store, judge.Summariser, condenser, more))
}

// embedded returns the store section for a file. Requests wait for it however busy the machine is.
func embedded(path string) string {
	return fmt.Sprintf("{type: embedded, path: %q, timeout: %s}", path, patience)
}

// newStore returns a path for the store of a test.
func newStore(t testing.TB) string { return filepath.Join(t.TempDir(), "dewpoint.db") }

// inRedis returns the store section for a Redis. Requests wait for it however busy the machine is.
func inRedis(addr string) string { return inRedisWithin(addr, patience) }

// inRedisWithin is inRedis for a Redis that will stop answering: requests wait for it no longer than timeout.
func inRedisWithin(addr string, timeout time.Duration) string {
	return fmt.Sprintf("{type: redis, timeout: %s, redis: {addrs: [%q]}}", timeout, addr)
}

func writeFile(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	ok(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
