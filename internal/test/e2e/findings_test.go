package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// hook is a webhook. At first it delays or refuses its calls.
type hook struct {
	t     *testing.T
	url   string
	asked chan struct{} // one signal per call
	mu    sync.Mutex
	how   string // hold, fail or take
	over  chan struct{}
	took  []findings.Message
}

func newHook(t *testing.T, how string) *hook {
	h := &hook{t: t, asked: make(chan struct{}, 1000), how: how, over: make(chan struct{})}
	server := httptest.NewServer(h)
	h.url = server.URL + "/hook?token=MARKER-URL"
	t.Cleanup(func() {
		close(h.over)
		server.Close()
	})
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var told findings.Message
	if err := json.NewDecoder(r.Body).Decode(&told); err != nil || r.Header.Get("Webhook-Id") != told.ID || r.Header.Get("Webhook-Signature") == "" {
		h.t.Errorf("told %+v as %v: %v", told, r.Header, err)
	}
	h.mu.Lock()
	how := h.how
	if how == "take" {
		h.took = append(h.took, told)
	}
	h.mu.Unlock()
	h.asked <- struct{}{}
	switch how {
	case "hold":
		select {
		case <-h.over:
		case <-r.Context().Done():
		}
	case "fail":
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (h *hook) set(how string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.how = how
}

func (h *hook) awaitCall() {
	h.t.Helper()
	select {
	case <-h.asked:
	case <-h.t.Context().Done():
		h.t.Fatal("it was not called")
	}
}

// ids returns the condensations that were reported to it, each once.
func (h *hook) ids() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]bool{}
	for _, told := range h.took {
		all[told.ID] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func (h *hook) memory() string {
	return fmt.Sprintf("{webhook: {url: %q, secret: MARKER-SECRET}}", h.url)
}

// deciding returns an upstream whose summariser reports findings.
func deciding(t *testing.T) *setting {
	return newSetting(t, fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "DECISIONS: MARKER-CONTENT the parcel goes by ship\nCODE_STATE: none\nNEXT_STEP: find the ship"}
	}})
}

// remembering returns a configuration with a memory.
func (s *setting) remembering(store, memory string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
condenser: {type: llm, llm_config: cheap, max_size: 10, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
memory: %s
shutdown: {delay: 0s, timeout: 1m}
`, s.url, store, judge.Summariser, memory)
}

// askLong sends a new conversation that is long enough to be condensed.
func askLong(t *testing.T, p *process, session string) (o outcome) {
	t.Helper()
	var messages []any
	for n := range 12 {
		messages = append(messages, map[string]string{
			"role": []string{"user", "assistant"}[n%2], "content": fmt.Sprintf("%s %d. %s", session, n, strings.Repeat("more of it ", 100)),
		})
	}
	messages = messages[:11]
	return try(t, p, "/chat/completions", session, map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": messages})
}

// condenseOnce has a new conversation condensed.
func condenseOnce(t *testing.T, p *process, session string) {
	t.Helper()
	o := askLong(t, p, session)
	if o.status != http.StatusOK || !strings.Contains(o.Get("X-Dewpoint-Condensed"), "summary") {
		t.Fatalf("%d %v %s", o.status, o.Header, o.text)
	}
}

// discreet checks that the log and the metrics contain neither findings nor secrets.
func discreet(t *testing.T, p *process) {
	t.Helper()
	for _, line := range append(p.metrics(), p.log.String()) {
		if strings.Contains(line, "MARKER") {
			t.Errorf("it shows too much: %.500s", line)
		}
	}
}

// wantMetric waits for a line in the metrics.
func wantMetric(t *testing.T, p *process, line string) {
	t.Helper()
	sessiontest.Eventually(t, line, func() error {
		if !slices.Contains(p.metrics(), line) {
			return fmt.Errorf("the metrics have no %s", line)
		}
		return nil
	})
}

// TestFindingsOutliveKills: findings that were not delivered when the process was killed are delivered by the next process or by
// another replica, with the id under which delivery had begun.
func TestFindingsOutliveKills(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) (store string, replicas bool){
		"embedded": func(t *testing.T) (string, bool) { return embedded(newStore(t)), false },
		"redis":    func(t *testing.T) (string, bool) { return inRedis(sessiontest.StartRedis(t).Addr), true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, h := deciding(t), newHook(t, "hold")
			section, replicas := store(t)
			file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.remembering(section, h.memory()))
			p := serve(t, "--config", file)
			other := p
			if replicas {
				other = serve(t, "--config", file)
			}
			condenseOnce(t, p, "one")
			h.awaitCall() // the delivery is in progress and not yet confirmed
			condenseOnce(t, p, "two")
			p.kill()
			h.set("take")
			if !replicas {
				other = serve(t, "--config", file)
			}
			sessiontest.Eventually(t, "both are told", func() error {
				if got := h.ids(); len(got) != 2 {
					return fmt.Errorf("told of %q", got)
				}
				return nil
			})
			wantMetric(t, other, `dewpoint_findings_pending{tenant="default"} 0`)
			told := h.took[0]
			want := []record.Finding{
				{Kind: record.Decision, Section: "DECISIONS", Text: "MARKER-CONTENT the parcel goes by ship"},
				{Kind: record.Task, Section: "NEXT_STEP", Text: "find the ship"},
			}
			if !slices.Equal(told.Findings, want) || told.Tenant != "default" || told.Model != judge.Summariser || told.Reason != "events" {
				t.Errorf("told %+v", told)
			}
			discreet(t, other)
		})
	}
}

// TestFindingsOutliveReloads: findings that a failing webhook did not accept are written to the file that a reload configures.
func TestFindingsOutliveReloads(t *testing.T) {
	t.Parallel()
	s, h, store := deciding(t), newHook(t, "fail"), embedded(newStore(t))
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", s.remembering(store, h.memory()))
	p := serve(t, "--config", file)
	condenseOnce(t, p, "one")
	h.awaitCall()
	p.await("findings are not delivered, and wait in the store; logged once until delivery recovers")
	wantMetric(t, p, `dewpoint_findings_pending{tenant="default"} 1`)
	lines := filepath.Join(t.TempDir(), "findings.jsonl")
	ok(t, os.WriteFile(file, []byte(s.remembering(store, fmt.Sprintf("{file: %q}", lines))), 0o600))
	ok(t, p.command.Process.Signal(syscall.SIGHUP))
	p.await("findings are delivered again")
	condenseOnce(t, p, "two")
	wantMetric(t, p, `dewpoint_findings_total{outcome="delivered",tenant="default"} 2`)
	content, err := os.Open(lines)
	ok(t, err)
	defer content.Close()
	sessions := map[string]bool{}
	for scan := bufio.NewScanner(content); scan.Scan(); {
		var told findings.Message
		ok(t, json.Unmarshal(scan.Bytes(), &told))
		sessions[string(told.Session)] = true
	}
	if len(sessions) != 2 {
		t.Errorf("the file tells of %d sessions", len(sessions))
	}
	discreet(t, p)
}

// bridge serves an MCP server that speaks over standard input and output to clients of streamable HTTP, one message at a time.
func bridge(t *testing.T, server *exec.Cmd, env string) (url string) {
	t.Helper()
	server.Env = append(os.Environ(), env)
	in, err := server.StdinPipe()
	ok(t, err)
	out, err := server.StdoutPipe()
	ok(t, err)
	ok(t, server.Start())
	var mu sync.Mutex
	lines := json.NewDecoder(out)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		type message struct {
			ID json.RawMessage `json:"id"`
		}
		var asked, answered message
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &asked) != nil {
			t.Errorf("sent %s (%v)", body, err)
		}
		if _, err := fmt.Fprintf(in, "%s\n", body); err != nil {
			t.Error(err)
		}
		if asked.ID == nil { // a notification
			w.WriteHeader(http.StatusAccepted)
			return
		}
		var line json.RawMessage
		for string(answered.ID) != string(asked.ID) {
			if lines.Decode(&line) != nil || json.Unmarshal(line, &answered) != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(line) // a client that has left needs no answer
	}))
	t.Cleanup(func() {
		front.Close()
		_ = server.Wait() // it was killed, since the test's context has ended
	})
	return front.URL
}

// TestReferenceMemory: the protocol's reference server, from npm, stores findings in its graph, each once.
func TestReferenceMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a package from npm")
	}
	t.Parallel()
	node, npm := need(t, "node", "install Node.js 20 or newer"), need(t, "npm", "install npm")
	dir := inCache(t, "memory", versionOf(t, node), []string{"memory/package.json", "memory/package-lock.json", "memory/.npmrc"}, func(dir string) {
		installBy(t, filepath.Join(dir, "memory"), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	graph := filepath.Join(t.TempDir(), "graph.jsonl")
	program := filepath.Join(dir, "memory", "node_modules", "@modelcontextprotocol", "server-memory", "dist", "index.js")
	s := deciding(t)
	url := bridge(t, exec.CommandContext(t.Context(), node, program), "MEMORY_FILE_PATH="+graph)
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", s.remembering(embedded(newStore(t)), fmt.Sprintf("{mcp: {url: %q}}", url))))
	condenseOnce(t, p, "one")
	condenseOnce(t, p, "two")
	wantMetric(t, p, `dewpoint_findings_total{outcome="delivered",tenant="default"} 2`)
	file, err := os.Open(graph)
	ok(t, err)
	defer file.Close()
	entities := 0
	for decoder := json.NewDecoder(file); ; entities++ {
		var e struct {
			Type, EntityType string
			Observations     []string
		}
		if err := decoder.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		want := []string{"decision (DECISIONS): MARKER-CONTENT the parcel goes by ship", "task (NEXT_STEP): find the ship"}
		if e.Type != "entity" || e.EntityType != "findings" || !slices.Equal(e.Observations, want) {
			t.Errorf("it remembers %+v", e)
		}
	}
	if entities != 2 {
		t.Errorf("it remembers %d", entities)
	}
	discreet(t, p)
}
