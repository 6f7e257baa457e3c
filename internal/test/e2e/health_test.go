package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// wantProbe calls a probe on the admin port, without a token.
func (p *process) wantProbe(path string, status int, says string) {
	p.t.Helper()
	ok(p.t, p.probe(path, status, says))
}

func (p *process) probe(path string, status int, says string) error {
	resp, err := http.Get("http://" + p.Admin + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != status || !strings.Contains(string(text), says) || !json.Valid(text) {
		return fmt.Errorf("%s: %s, want %d with %q: %s", path, resp.Status, status, says, text)
	}
	return nil
}

// TestProbes checks the probes of a proxy, also by the health check of a container.
func TestProbes(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	file := s.config(t, embedded(newStore(t)))
	p := serve(t, "--config", file)
	sessiontest.Eventually(t, "it has started", func() error { return p.probe("/startupz", http.StatusOK, `"vocabularies":{"status":"ok"}`) })
	p.wantProbe("/startupz", http.StatusOK, `"listening":{"status":"ok"}`)
	p.wantProbe("/livez", http.StatusOK, `"serving":{"status":"ok"}`)
	p.wantProbe("/healthz", http.StatusOK, `"serving":{"status":"ok"}`)
	p.wantProbe("/readyz", http.StatusOK, `"store":{"status":"ok"}`)
	for _, flag := range []string{"--live", "--ready", "--startup"} {
		if got := command(t, "health", flag, "--admin", p.Admin); got.Code != 0 || !strings.Contains(got.Out, `"status":"ok"`) {
			t.Errorf("health %s: %+v", flag, got)
		}
	}
	if got := command(t, "health", "--live", "--ready", "--admin", p.Admin); got.Code != 2 {
		t.Errorf("two questions at once: %+v", got)
	}

	good, err := os.ReadFile(file)
	ok(t, err)
	ok(t, os.WriteFile(file, []byte("listen: nowhere\n"), 0o600))
	p.await("configuration not reloaded: the last good one stays")
	p.wantProbe("/readyz", http.StatusOK, `"config":{"status":"degraded"`)
	ok(t, os.WriteFile(file, good, 0o600))
	p.await("configuration reloaded")
	p.wantProbe("/readyz", http.StatusOK, `"config":{"status":"ok"}`)

	p.terminate()
	wantExit(t, p, 0)
	if got := command(t, "health", "--admin", p.Admin); got.Code != 1 {
		t.Errorf("health of a proxy that is gone: %+v", got)
	}
}

// TestHealthFindsTheServer runs the health check without an address, as the image does: it checks the only proxy that runs the
// same file.
func TestHealthFindsTheServer(t *testing.T) { // not parallel: it runs a copy of the binary
	program, err := os.ReadFile(binary)
	ok(t, err)
	all := binary
	t.Cleanup(func() { binary = all })
	binary = filepath.Join(t.TempDir(), "dewpoint")
	ok(t, os.WriteFile(binary, program, 0o700)) // it is run
	if got := command(t, "health", "--config", "/nowhere.yaml"); got.Code != 2 {
		t.Errorf("a file that is not there: %+v", got)
	}
	s := newSetting(t, fakeupstream.Options{})
	admin, err := running.FreeAddr()
	ok(t, err)
	p := serve(t, "--config", s.config(t, embedded(newStore(t))), "--admin", admin)
	sessiontest.Eventually(t, "it has started", func() error { return p.probe("/startupz", http.StatusOK, "") })
	if got := command(t, "health"); got.Code != 0 || !strings.Contains(got.Out, `"status":"ok"`) {
		t.Errorf("health: %+v", got)
	}
}

// TestHealthWhileDraining: the health check fails once the proxy is asked to stop.
func TestHealthWhileDraining(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.configEnding(t, embedded(newStore(t)), manySteps, "{delay: 1h, timeout: 1m}"))
	p.terminate()
	p.await("stopping")
	if got := command(t, "health", "--ready", "--admin", p.Admin); got.Code != 1 || !strings.Contains(got.Out, "stopping") {
		t.Errorf("ready: %+v", got)
	}
	if got := command(t, "health", "--live", "--admin", p.Admin); got.Code != 0 {
		t.Errorf("live: %+v", got)
	}
	p.terminate()
	wantExit(t, p, 0)
}

// TestReadyWithoutRedis: a proxy stays ready while its Redis is unavailable, since requests are served without it. The probes, the metrics and
// the log report it even before there is a request.
func TestReadyWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := sessiontest.StartRedis(t)
	s := newSetting(t, fakeupstream.Options{})
	redis.Kill()
	p := serve(t, "--config", s.config(t, inRedis(redis.Addr)))
	for round := range 2 {
		p.wantProbe("/readyz", http.StatusOK, `"store":{"status":"degraded"`)
		if metrics := p.metrics(); !slices.Contains(metrics, "dewpoint_store_degraded 1") || round == 0 && !slices.Contains(metrics, `dewpoint_store_losses_total{op="resolve"} 0`) {
			t.Errorf("the metrics: %s", strings.Join(metrics, "\n"))
		}
		sessiontest.Eventually(t, "the log has a line for each round", func() error { // it may be behind
			if n := strings.Count(p.log.String(), `"msg":"store unavailable`); n != round+1 {
				return fmt.Errorf("logged %d times in round %d", n, round)
			}
			return nil
		})
		ok(t, send(t, p, body(demo.Sample().Messages[:2])).finish())
		redis.Start()
		sessiontest.Eventually(t, "the store is back, without a request", func() error {
			return p.probe("/readyz", http.StatusOK, `"store":{"status":"ok"}`)
		})
		redis.Kill()
	}
}
