package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// TestStoreDamagedInUse destroys the pages of the file of a running proxy: each request is served, the proxy reports the damage,
// and check-store describes it and moves the file aside.
func TestStoreDamagedInUse(t *testing.T) {
	t.Parallel()
	s, path := newSetting(t, fakeupstream.Options{}), newStore(t)
	config := s.config(t, embedded(path))
	p := serve(t, "--config", config)
	all := demo.Sample().Messages
	ok(t, send(t, p, body(all[:2])).finish())
	losePages(t, path)
	for range 3 {
		ok(t, send(t, p, body(all[:2])).finish())
	}
	p.wantProbe("/readyz", http.StatusOK, `"store":{"status":"degraded","detail":"damaged`)
	p.terminate()
	wantExit(t, p, 1)  // the store could not be closed properly
	losePages(t, path) // including those written since, possibly with the root
	if got := command(t, "serve", "--config", config); got.Code != 1 || !strings.Contains(got.Err, "check-store") {
		t.Errorf("serve over the damaged file: %+v", got)
	}
	if got := command(t, "check-store", path); got.Code != 1 || !strings.Contains(got.Out, "damaged: ") {
		t.Errorf("check-store: %+v", got)
	}
	if got := command(t, "check-store", "--renew", path); got.Code != 0 {
		t.Errorf("check-store --renew: %+v", got)
	}
	again := serve(t, "--config", config)
	again.wantProbe("/readyz", http.StatusOK, `"store":{"status":"ok"}`)
	ok(t, send(t, again, body(all[:2])).finish())
	again.terminate()
	wantExit(t, again, 0)
}

// losePages overwrites all pages of a store's file with zeros except the first two, which locate the root.
func losePages(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	info, err := f.Stat()
	ok(t, err)
	pages := int64(2 * os.Getpagesize())
	_, err = f.WriteAt(make([]byte, info.Size()-pages), pages)
	ok(t, err)
	ok(t, f.Close())
}
