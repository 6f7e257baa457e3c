package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// byTeams is a configuration whose tenants are the operator's own, op, and those in files of teams.
type byTeams struct {
	t      testing.TB
	s      *setting
	folder string // tenants_dir
	file   string // the operator's
	admin  http.Header
}

func newByTeams(t testing.TB) *byTeams {
	t.Helper()
	dir := t.TempDir()
	f := &byTeams{t: t, s: newSetting(t, fakeupstream.Options{}), folder: filepath.Join(dir, "tenants"), admin: http.Header{"Authorization": {"Bearer token"}}}
	ok(t, os.Mkdir(f.folder, 0o700))
	f.file = filepath.Join(dir, "dewpoint.yaml")
	f.operator("")
	return f
}

// operator writes the operator's file.
func (f *byTeams) operator(more string) {
	f.t.Helper()
	f.put(f.file, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0", token: token}
upstream: {base_url: %q}
store: %s
shutdown: {delay: 0s}
tenants: {op: {%s}}
tenants_dir: %q
%s`, f.s.url, embedded(filepath.Join(filepath.Dir(f.file), "op.db")), keysOf("op"), f.folder, more))
}

// keysOf returns the api_keys of a tenant whose keys are key-NAME.
func keysOf(names ...string) string {
	for i, name := range names {
		names[i] = fmt.Sprintf("{sha256: %x}", sha256.Sum256([]byte("key-"+name)))
	}
	return "api_keys: [" + strings.Join(names, ", ") + "]"
}

// put replaces a file at once.
func (f *byTeams) put(path, text string) {
	f.t.Helper()
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	ok(f.t, os.WriteFile(next, []byte(text), 0o600))
	ok(f.t, os.Rename(next, path))
}

func (f *byTeams) team(name, text string) {
	f.t.Helper()
	f.put(filepath.Join(f.folder, name), text)
}

// start starts a process with its own store.
func (f *byTeams) start() *process {
	f.t.Helper()
	return serve(f.t, "--config", f.file, "--store", newStore(f.t))
}

// want waits until requests with the keys get these statuses, written as op:200 a:503. The process may still be reloading.
func (p *process) want(keys string) {
	p.t.Helper()
	sessiontest.Eventually(p.t, keys, func() error {
		var got []string
		for pair := range strings.FieldsSeq(keys) {
			name, _, _ := strings.Cut(pair, ":")
			_, status := ask(p.t, p, "key-"+name, 4)
			got = append(got, fmt.Sprintf("%s:%d", name, status))
		}
		if all := strings.Join(got, " "); all != keys {
			return fmt.Errorf("got %s", all)
		}
		return nil
	})
}

// wantRefused waits until the probe and the metric name exactly these tenants, each as NAME:last_good or NAME:nothing.
func (f *byTeams) wantRefused(p *process, all string) {
	f.t.Helper()
	sessiontest.Eventually(f.t, "refused are "+all, func() error {
		status := "degraded"
		if all == "" {
			status = "ok"
		}
		if err := p.probe("/readyz", http.StatusOK, `"tenants":{"status":"`+status+`"`); err != nil {
			return err
		}
		metrics, want := f.get(p, "/metrics"), 0
		for tenant := range strings.FieldsSeq(all) {
			name, serves, _ := strings.Cut(tenant, ":")
			if err := p.probe("/readyz", http.StatusOK, name); err != nil {
				return err
			}
			if !strings.Contains(metrics, fmt.Sprintf("dewpoint_tenant_refused{serves=%q,tenant=%q} 1\n", serves, name)) {
				return fmt.Errorf("no metric of %s", tenant)
			}
			want++
		}
		if n := strings.Count(metrics, "dewpoint_tenant_refused{"); n != want {
			return fmt.Errorf("%d tenants in the metric, not %d", n, want)
		}
		return nil
	})
}

// get reads a path of the admin port with the token.
func (f *byTeams) get(p *process, path string) string {
	f.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+p.Admin+path, nil)
	ok(f.t, err)
	req.Header = f.admin
	resp, err := http.DefaultClient.Do(req)
	ok(f.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(f.t, err)
	return string(text)
}

// TestBrokenFileOfATeam: a team's broken file leaves its last good version in force in a process that runs, and is refused in one that
// starts. All other tenants go on and change. A correction is taken at once.
func TestBrokenFileOfATeam(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string // of b.yaml
		says  string // in the log and in check-config
		begun int    // status of b's requests in a process that starts
	}{
		"not YAML":              {"api_keys: [", "is not YAML", 401},
		"unknown key":           {keysOf("b") + "\nnotifi: true", "is not a known key", 503},
		"wrong value":           {keysOf("b") + "\nnotify: maybe", "must be true or false", 503},
		"forbidden path":        {keysOf("b") + "\nmemory: {file: /tmp/x}", "names a file or folder", 503},
		"forbidden host":        {keysOf("b") + "\nupstream: {base_url: \"http://10.1.2.3/v1\"}", "names a host that teams may not use", 503},
		"unknown llm":           {keysOf("b") + "\ncondenser: {type: llm, max_size: 20, llm_config: none}", "llm_config", 503},
		"key of the operator":   {keysOf("b", "op"), "is also the key of tenants.op", 503},
		"key of another team":   {keysOf("b", "a"), "is also the key of tenants_dir", 503},
		"longer than allowed":   {keysOf("b") + "\n" + strings.Repeat("# x\n", 10_000), "is larger than", 401},
		"no keys any more":      {"notify: true", "api_keys: is empty", 401},
		"another tenant's name": {keysOf("b") + "\nname: a", "the name of its section or file", 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newByTeams(t)
			f.team("a.yaml", keysOf("a"))
			f.team("b.yaml", keysOf("b"))
			p := f.start()
			p.want("op:200 a:200 b:200 x:401")
			f.wantRefused(p, "")

			f.team("b.yaml", c.text)
			p.awaitLine(`"msg":"a tenant's file is refused","tenant":"b"`)
			p.awaitLine(c.says)
			f.team("c.yaml", keysOf("c"))
			f.operator("models: {m: {context_window: 10000}}")
			p.want("op:200 a:200 b:200 c:200 x:401")
			first := "b:last_good"
			if name == "key of another team" {
				first += " a:last_good" // it cannot be told which of the two owns the key
			}
			f.wantRefused(p, first)
			if n := strings.Count(p.log.String(), `"msg":"a tenant's file is refused","tenant":"b"`); n != 1 {
				t.Errorf("the log says it %d times", n)
			}
			if got := command(t, "check-config", f.file); got.Code != 2 || !strings.Contains(got.Err, c.says) {
				t.Errorf("check-config: %+v", got)
			}

			fresh := f.start()
			fresh.awaitLine(c.says)
			if name == "key of another team" {
				fresh.want("op:200 a:503 b:503 c:200 x:401")
				f.wantRefused(fresh, "a:nothing b:nothing")
			} else {
				fresh.want(fmt.Sprintf("op:200 a:200 b:%d c:200 x:401", c.begun))
				f.wantRefused(fresh, "b:nothing")
			}

			f.team("b.yaml", keysOf("b", "b2"))
			for _, p := range []*process{p, fresh} {
				p.want("op:200 a:200 b:200 b2:200 c:200 x:401")
				f.wantRefused(p, "")
			}
		})
	}
}

// TestErrorOfARefusedTenant: the error has a stable code, the shape of the client's protocol, and says what to do.
func TestErrorOfARefusedTenant(t *testing.T) {
	t.Parallel()
	f := newByTeams(t)
	f.team("b.yaml", keysOf("b")+"\nnotifi: true")
	f.team("gone.yaml", "") // an empty file has no keys
	p := f.start()
	for path, shape := range map[string]string{
		"/chat/completions": `{"error":{"message":"`, "/responses": `{"error":{"message":"`, "/messages": `{"type":"error","error":{"type":"`,
	} {
		req, err := http.NewRequest(http.MethodPost, p.url()+path, bytes.NewReader([]byte(`{"model":"m"}`)))
		ok(t, err)
		req.Header.Set("Authorization", "Bearer key-b")
		resp, err := http.DefaultClient.Do(req)
		ok(t, err)
		text, err := io.ReadAll(resp.Body)
		ok(t, err)
		_ = resp.Body.Close()
		if got := string(text); resp.StatusCode != 503 || !strings.HasPrefix(got, shape) || !strings.Contains(got, "tenant_refused") || !strings.Contains(got, "check-config") {
			t.Errorf("%s: %s %s", path, resp.Status, got)
		}
	}
	if got := f.get(p, "/metrics"); !strings.Contains(got, `code="tenant_refused"`) || !strings.Contains(got, `tenant="b"`) {
		t.Error("the requests are not counted for the tenant")
	}
}

// TestAllTeamsFilesAreRefused: a proxy whose every tenant is refused does not open to any key.
func TestAllTeamsFilesAreRefused(t *testing.T) {
	t.Parallel()
	f := newByTeams(t)
	text, err := os.ReadFile(f.file)
	ok(t, err)
	f.put(f.file, strings.Replace(string(text), "tenants: {op: {"+keysOf("op")+"}}\n", "", 1))
	f.team("a.yaml", keysOf("a")+"\nnotifi: true")
	f.team("b.yaml", "api_keys: [")
	p := f.start()
	p.want("a:503 b:401 op:401 x:401")
	f.wantRefused(p, "a:nothing b:nothing")
	f.team("a.yaml", keysOf("a"))
	p.want("a:200 b:401 op:401 x:401")
}

// TestOperatorChangesUnderATeam: a change of the operator's that a team's file, or its last good version, does not fit refuses that team
// alone. The operator's own tenants take names and keys that a team has had.
func TestOperatorChangesUnderATeam(t *testing.T) {
	t.Parallel()
	f := newByTeams(t)
	llm := "llms: {cheap: {model: m}}\n"
	f.operator(llm)
	f.team("a.yaml", keysOf("a")+"\ncondenser: {type: llm, llm_config: cheap, max_size: 20}")
	f.team("b.yaml", keysOf("b")+"\ncondenser: {type: llm, llm_config: cheap, max_size: 20}")
	f.team("c.yaml", keysOf("c"))
	p := f.start()
	p.want("op:200 b:200 c:200 a:200")

	f.team("b.yaml", "api_keys: [") // its last good version names the llm as well
	f.wantRefused(p, "b:last_good")
	f.operator("llms: {other: {model: m}}\n")
	f.wantRefused(p, "a:nothing b:nothing")
	p.want("op:200 a:503 b:503 c:200")
	f.operator(llm)
	f.wantRefused(p, "b:last_good")
	p.want("op:200 b:200 c:200 a:200")

	f.operator("llms: {other: {model: m}}\n")
	f.wantRefused(p, "a:nothing b:nothing")
	f.team("c.yaml", keysOf("c", "b")) // while b is refused, another team takes its key
	p.want("op:200 a:503 b:200 c:200")
	f.operator(llm)
	f.wantRefused(p, "b:nothing") // its last good version cannot return
	p.want("op:200 b:200 c:200 a:200")
	f.team("c.yaml", keysOf("c"))
	f.wantRefused(p, "b:last_good")

	text, err := os.ReadFile(f.file)
	ok(t, err)
	f.put(f.file, strings.Replace(string(text), keysOf("op"), keysOf("op", "c"), 1))
	f.wantRefused(p, "b:last_good c:nothing")
	p.want("op:200 c:200 a:200 b:200")
	f.operator("listn: x\n")
	p.awaitLine("configuration not reloaded: the last good one stays")
	p.want("op:200 c:200 a:200 b:200")
}

// TestRemovedFileOfATeam: a tenant whose broken file is removed is gone, also its last good version.
func TestRemovedFileOfATeam(t *testing.T) {
	t.Parallel()
	f := newByTeams(t)
	f.team("b.yaml", keysOf("b"))
	p := f.start()
	p.want("op:200 b:200")
	f.team("b.yaml", "api_keys: [")
	f.wantRefused(p, "b:last_good")
	ok(t, os.Remove(filepath.Join(f.folder, "b.yaml")))
	ok(t, os.Symlink("nowhere", filepath.Join(f.folder, "c.yaml"))) // cannot be read, and was never good
	f.wantRefused(p, "c:nothing")
	p.want("op:200 b:401")
}

// TestNewestClaimDoesNotTakeAKey: while a team's file cannot be read, its last good version keeps its keys from all others.
func TestNewestClaimDoesNotTakeAKey(t *testing.T) {
	t.Parallel()
	f := newByTeams(t)
	f.team("a.yaml", keysOf("a")+"\nupstream: {api_key: of-a}")
	f.team("b.yaml", keysOf("b")+"\nupstream: {api_key: of-b}")
	p := f.start()
	p.want("a:200 b:200")
	f.team("b.yaml", "api_keys: [")
	f.wantRefused(p, "b:last_good")
	f.team("a.yaml", keysOf("a", "b")+"\nupstream: {api_key: of-a}")
	f.wantRefused(p, "a:last_good b:last_good")
	p.want("a:200 b:200")
	requests := f.s.Upstream.Requests()
	if got := requests[len(requests)-1].Header.Get("Authorization"); got != "Bearer of-b" {
		t.Errorf("b's request has %q", got)
	}
}

// TestLostFolderOfATeam: a tenant whose folder of texts cannot be read any more keeps its last good version, also when another team's file
// causes the reload.
func TestLostFolderOfATeam(t *testing.T) {
	t.Parallel()
	f := newByTeams(t)
	f.operator("tenants_trusted: true")
	texts := filepath.Join(t.TempDir(), "texts")
	ok(t, os.Mkdir(texts, 0o700))
	writeFile(t, texts, "repo.md", "The key is REPO-KNOWN.\n")
	f.team("a.yaml", fmt.Sprintf("{%s, knowledge: {folder: %q}}", keysOf("a"), texts))
	f.team("b.yaml", "{"+keysOf("b")+"}")
	p := f.start()
	p.want("op:200 a:200 b:200")
	ok(t, os.Rename(texts, texts+".away"))
	f.team("b.yaml", "{"+keysOf("b", "c")+"}")
	p.want("op:200 b:200 c:200 a:200")
	f.wantRefused(p, "a:last_good")
	if sent := string(lastBody(f.s.Upstream)); !strings.Contains(sent, "REPO-KNOWN") {
		t.Errorf("upstream got %s", sent)
	}
	ok(t, os.Rename(texts+".away", texts))
	f.team("b.yaml", "{"+keysOf("b")+"}")
	f.wantRefused(p, "")
	p.want("op:200 a:200 b:200")
}
