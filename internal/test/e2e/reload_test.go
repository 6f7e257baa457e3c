package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// tenants writes a configuration of two tenants, of which the second condenses above max events.
func (s *setting) tenants(store string, max int, more string) string {
	key := func(k string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(k))) }
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q, api_key: upstream-key}
store: {type: embedded, path: %q, timeout: 1m}
llms: {cheap: {model: %s}}
condenser: {type: noop}
tenants:
  - {name: one, api_keys: [{sha256: %s}]}
  - {name: two, api_keys: [{sha256: %s}], condenser: {type: llm, llm_config: cheap, trigger: limits, wait: deadline, deadline: 1m, background_at: 0, max_size: %d, min_tokens: 0}}
%s`, s.url, store, judge.Summariser, key("key-one"), key("key-two"), max, more)
}

// ask sends the first n messages of the sample as a tenant, and returns the header about condensations.
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

// TestReload runs two tenants with different condensers, and changes one of them by file and by signal during requests: none is
// lost, an invalid configuration changes nothing, and a valid one takes effect.
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

// TestReloadBySignal: SIGHUP reloads the file, and the log names settings that need a restart.
func TestReloadBySignal(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	store := newStore(t)
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.tenants(store, 100, ""))
	p := serve(t, "--config", file)
	ok(t, p.command.Process.Signal(syscall.SIGHUP))
	p.await("configuration reloaded")
	ok(t, os.WriteFile(file, []byte(s.tenants(store, 100, "log: {level: debug}\n")), 0o600))
	p.awaitLine(`"msg":"configuration reloaded","tenants":2,"keys_changed":["log"],"at_next_start":["log"]`)
}

// TestNoReloadOpensTheProxy: a configuration without the tenants it had, such as an emptied file, is refused, since it would
// accept any key.
func TestNoReloadOpensTheProxy(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"emptied": "", "no tenants": "tenants: {}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.tenants(newStore(t), 100, ""))
			p := serve(t, "--config", file)
			ok(t, os.WriteFile(file, []byte(text), 0o600))
			p.awaitLine("any key would pass")
			if _, status := ask(t, p, "key-of-none", 4); status != http.StatusUnauthorized {
				t.Errorf("an unknown key gets %d", status)
			}
			if _, status := ask(t, p, "key-one", 4); status != http.StatusOK {
				t.Errorf("a tenant's key gets %d", status)
			}
		})
	}
}

// TestReloadFromANewFolder: if the changed file names a new folder of tenants with an error in it, that folder and its subfolders are watched, so
// that the correction is noticed.
func TestReloadFromANewFolder(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	store, folder := newStore(t), filepath.Join(t.TempDir(), "tenants")
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.tenants(store, 100, ""))
	p := serve(t, "--config", file)
	release(t, folder, "teams", map[string]string{"three.yaml": "api_keys: ["})
	ok(t, os.WriteFile(file, []byte(s.tenants(store, 100, fmt.Sprintf("tenants_dir: %q\ntenants_trusted: true\n", folder))), 0o600))
	p.awaitLine(`tenants_dir[\"teams/three.yaml\"]: is not YAML`)
	p.awaitLine(`"msg":"configuration reloaded","tenants":2,"keys_changed":["tenants_dir","tenants_trusted"],"tenants_refused":["three"]}`)
	key := func(key string) string { return fmt.Sprintf("api_keys: [{sha256: %x}]", sha256.Sum256([]byte(key))) }
	release(t, folder, "teams", map[string]string{"three.yaml": key("key-three")})
	p.awaitLine(`"msg":"configuration reloaded","tenants":3,"tenants_added":["three"]}`)
	release(t, folder, "more", map[string]string{"four.yaml": key("key-four")})
	p.awaitLine(`"msg":"configuration reloaded","tenants":4,"tenants_added":["four"]}`)
	for _, key := range []string{"key-one", "key-three", "key-four"} {
		if _, status := ask(t, p, key, 4); status != http.StatusOK {
			t.Errorf("%s: status %d", key, status)
		}
	}
}

// awaitLine waits for a text in the log.
func (p *process) awaitLine(part string) {
	p.t.Helper()
	sessiontest.Eventually(p.t, "the log has "+part, func() error {
		if !strings.Contains(p.log.String(), part) {
			return errors.New("it has not")
		}
		return nil
	})
}

// turn atomically makes a link point to a folder.
func turn(t *testing.T, link, to string) {
	t.Helper()
	ok(t, os.Symlink(to, link+"_tmp"))
	ok(t, os.Rename(link+"_tmp", link))
}

// release writes files into a new folder.
func release(t *testing.T, in, name string, files map[string]string) {
	t.Helper()
	ok(t, os.MkdirAll(filepath.Join(in, name), 0o700))
	for file, text := range files {
		writeFile(t, filepath.Join(in, name), file, text)
	}
}

// TestTenantsInAFolder: tenants in a folder are served together with those in the file, both if Kubernetes mounts the folder and if the folder is
// a link. A change of several files is logged as one line, with the tenants' names; an invalid file concerns its tenant only.
func TestTenantsInAFolder(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	tenant := func(key, more string) string {
		return fmt.Sprintf("api_keys: [{sha256: %x}]\n%s", sha256.Sum256([]byte(key)), more)
	}
	base := t.TempDir()
	mount, folder := filepath.Join(base, "mount"), filepath.Join(base, "tenants")
	release(t, mount, "..1", map[string]string{"b.yaml": tenant("key-b", ""), "c.yaml": tenant("key-c", "notify: true")})
	turn(t, filepath.Join(mount, "..data"), "..1")
	for _, file := range []string{"b.yaml", "c.yaml"} {
		turn(t, filepath.Join(mount, file), filepath.Join("..data", file))
	}
	turn(t, folder, mount)
	config := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
tenants: {a: {%s}}
tenants_dir: %q
tenants_trusted: true
`, s.url, embedded(newStore(t)), tenant("key-a", ""), folder))
	p := serve(t, "--config", config)
	served := func(want string) {
		t.Helper()
		got := ""
		for _, name := range strings.Split("abcdx", "") {
			if _, status := ask(t, p, "key-"+name, 4); status == http.StatusOK {
				got += name
			}
		}
		if got != want {
			t.Errorf("%s are served, not %s", got, want)
		}
	}
	served("abc")

	release(t, mount, "..2", map[string]string{"b.yaml": tenant("key-x", ""), "c.yaml": tenant("key-c", "")})
	turn(t, filepath.Join(mount, "..data"), "..2")
	p.awaitLine(`"msg":"configuration reloaded","tenants":3,"tenants_changed":["b","c"]}`)
	served("acx")

	release(t, base, "next", map[string]string{"c.yaml": tenant("key-c", "notify: true"), "d.yaml": tenant("key-d", ""), "e.yaml": tenant("key-e", "")})
	turn(t, folder, "next")
	p.awaitLine(`"msg":"configuration reloaded","tenants":4,"tenants_added":["d","e"],"tenants_removed":["b"],"tenants_changed":["c"]}`)
	served("acd")

	release(t, base, "bad", map[string]string{"a.yaml": tenant("key-x", ""), "c.yaml": "api_keys: ["})
	turn(t, folder, "bad")
	p.awaitLine(`tenants_dir[\"c.yaml\"]: is not YAML: check indentation, colons and quotes (` + filepath.Join(folder, "c.yaml") + `, line 1)`)
	p.awaitLine(`tenants_dir[\"a.yaml\"].name: is also the name of tenants.a: give each tenant its own (` + filepath.Join(folder, "a.yaml"))
	p.awaitLine(`"msg":"configuration reloaded","tenants":2,"tenants_removed":["d","e"],"tenants_refused":["a","c"]}`)
	served("ac")

	ok(t, os.Remove(folder))
	p.awaitLine("tenants_dir: cannot be read")
	turn(t, folder, mount)
	p.awaitLine(`"msg":"configuration reloaded","tenants":3,"tenants_added":["b"],"tenants_changed":["c"]}`)
	served("acx")
	if n := strings.Count(p.log.String(), `"msg":"configuration reloaded"`); n != 4 {
		t.Errorf("%d lines of 4 reloads", n)
	}
	if f := command(t, "check-config", "--print", config); f.Code != 0 || !strings.Contains(f.Out, "- name: b\n") || strings.Contains(f.Out, "tenants_dir") {
		t.Errorf("check-config: %d %s%s", f.Code, f.Out, f.Err)
	}
}
