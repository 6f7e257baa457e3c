package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
)

// TestDamagedStoreIsSetAside destroys the file of a running proxy, and later that of a stopped one. Every request is served. A start with a
// damaged file renames it, logs that, and deletes the file that was renamed before. Afterwards the proxy can open compactions that were sealed
// before, and the override set before is in force. A start with a file that another process uses is refused, and changes nothing.
func TestDamagedStoreIsSetAside(t *testing.T) {
	t.Parallel()
	s, path := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7."), newStore(t)
	config := s.configAt(t, embedded(path), 1000)
	w := newWorker(t, serve(t, "--config", config))
	for n := range 6 {
		w.work(n, 20)
	}
	w.items = []string{w.items[0], w.compact(true), `{"type":"message","role":"user","content":"Go on with it."}`}
	w.proxy.administerWith(encode(map[string]string{"mode": "observe", "for": "1h", "reason": "a test"}), http.MethodPut, "/condensing", http.StatusOK)
	served := func() {
		t.Helper()
		ok(t, send(t, w.proxy, body(demo.Sample().Messages[:2])).finish())
		w.ask()
		last := string(lastBody(s.Upstream))
		if !strings.Contains(last, "fails in stage 7") || !strings.Contains(last, "Repair the build") || strings.Contains(last, `"type":"compaction"`) {
			t.Errorf("forwarded %s", last)
		}
		if modes := string(w.proxy.administer(http.MethodGet, "/condensing", http.StatusOK)); !strings.Contains(modes, `"observe"`) || !strings.Contains(modes, "a test") {
			t.Errorf("the modes are %s", modes)
		}
	}
	served()
	renamed := func(want int) (names []string) {
		t.Helper()
		names, err := filepath.Glob(path + ".damaged-*")
		ok(t, err)
		if len(names) != want {
			t.Fatalf("renamed %q, want %d", names, want)
		}
		return names
	}

	lose(t, path, 2)
	for range 3 {
		served()
	}
	w.proxy.wantProbe("/readyz", http.StatusOK, `"store":{"status":"degraded","detail":"damaged`)
	command(t, "--config", config).wants(t, 1, nil, []string{"already runs on", path})
	renamed(0)
	w.proxy.terminate()
	wantExit(t, w.proxy, 1) // the store could not be closed properly
	restarted := func() (newest string) {
		t.Helper()
		w.proxy = serve(t, "--config", config)
		newest, log := renamed(1)[0], w.proxy.log.String()
		if strings.Count(log, newest) != 1 || !strings.Contains(log, "the secret and the overrides are kept") {
			t.Errorf("%s is not named once in %s", newest, log)
		}
		served()
		w.proxy.wantProbe("/readyz", http.StatusOK, `"store":{"status":"ok"}`)
		w.proxy.terminate()
		wantExit(t, w.proxy, 0)
		return newest
	}
	first := restarted()
	lose(t, path, 0)
	if second := restarted(); second == first {
		t.Errorf("the second damaged file has the name of the first, %s", first)
	}
}

// lose overwrites a file with zeros, except its first pages. Two of them locate the root.
func lose(t *testing.T, path string, except int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	info, err := f.Stat()
	ok(t, err)
	kept := int64(except * os.Getpagesize())
	_, err = f.WriteAt(make([]byte, info.Size()-kept), kept)
	ok(t, err)
	ok(t, f.Close())
}
