package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// shelf is a folder of microagents as OpenHands has them: with front matter of several forms, and one without.
func shelf(t *testing.T) string {
	folder := t.TempDir()
	writeFile(t, folder, "ferry.md", "---\nname: ferry\ntype: knowledge\nversion: 1.0.0\nagent: CodeActAgent\ntriggers:\n- ferry\n- Fährplan\n---\n\nFerries leave at 07:40. The key is FERRY-KNOWN.\n")
	writeFile(t, folder, "harbour.md", "---\nname: harbour\ntype: knowledge\ntriggers: [harbour]\n---\nThe key is HARBOUR-KNOWN. </EXTRA_INFO> It stays inside.\n")
	writeFile(t, folder, "long.md", "---\ntriggers: [tome]\n---\nLONG-KNOWN "+strings.Repeat("a very long text ", 3000))
	writeFile(t, folder, "repo.md", "Build with make. The key is REPO-KNOWN.\n")
	writeFile(t, folder, "README.md", "About this folder.\n")
	return folder
}

func (s *setting) knowing(t *testing.T, store, folder string) string {
	return writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: excerpts, max_size: 12, min_tokens: 0, keep_first: 1}
knowledge: {folder: %q, max_tokens: 2000}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, store, folder))
}

// speaker writes a conversation in one of the protocols.
type speaker struct {
	path string
	said []map[string]any
}

func (s *speaker) says(role, text string) {
	s.said = append(s.said, map[string]any{"role": role, "content": text})
}

func (s *speaker) body() map[string]any {
	if s.path == "/responses" {
		return map[string]any{"model": "gpt-4o", "instructions": "Be brief.", "input": s.said}
	}
	return map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": s.said}
}

// ask sends the conversation, and returns the forwarded messages.
func (s *speaker) ask(t *testing.T, up *fakeupstream.Server, p *process) string {
	t.Helper()
	o := try(t, p, s.path, "", s.body())
	if o.status != http.StatusOK {
		t.Fatalf("%s: %d %s", s.path, o.status, o.text)
	}
	return string(lastBody(up))
}

// list returns the raw messages of a request.
func list(t *testing.T, body string) (all []json.RawMessage) {
	t.Helper()
	var b struct{ Messages, Input []json.RawMessage }
	ok(t, json.Unmarshal([]byte(body), &b))
	return append(b.Messages, b.Input...)
}

// TestKnowledge: in each protocol a trigger word in a user message adds a text once, at its place, permanently: on another
// replica, after a restart, and after its message was condensed away.
func TestKnowledge(t *testing.T) {
	for _, path := range []string{"/chat/completions", "/messages", "/responses"} {
		t.Run(path[1:], func(t *testing.T) {
			t.Parallel()
			folder, redis := shelf(t), sessiontest.StartRedis(t)
			s := newSetting(t, fakeupstream.Options{})
			config := s.knowing(t, inRedis(redis.Addr), folder)
			pair := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
			c := &speaker{path: path}
			c.says("user", "Plan my day. <env>the ferry of the environment</env>")
			first := c.ask(t, s.Upstream, pair[0])
			if strings.Count(first, "REPO-KNOWN") != 1 || strings.Contains(first, "FERRY-KNOWN") || !strings.Contains(first, "EXTRA_INFO") {
				t.Errorf("the first request went as %s", first)
			}
			c.says("assistant", "Gladly. By ferry?")
			c.says("user", "When goes the FERRY? The tome says nothing.")
			second := c.ask(t, s.Upstream, pair[1])
			for i, m := range list(t, first) {
				if got := list(t, second)[i]; string(got) != string(m) {
					t.Errorf("message %d was %s, and is %s", i, m, got)
				}
			}
			if strings.Count(second, "FERRY-KNOWN") != 1 || strings.Contains(second, "LONG-KNOWN") {
				t.Errorf("the second request went as %.3000s", second)
			}
			writeFile(t, folder, "ferry.md", "---\nname: ferry\ntriggers: [ferry]\n---\nFERRY-CHANGED\n")
			pair[0].kill()
			pair[0] = serve(t, "--config", config)
			if again := c.ask(t, s.Upstream, pair[0]); again != second {
				t.Errorf("a retry went as %s, first as %s", again, second)
			}
			for n := range 12 {
				c.says("assistant", fmt.Sprintf("Answer %d. %s", n, strings.Repeat("It takes a while. ", 60)))
				c.says("user", fmt.Sprintf("Question %d about the ferry and the harbour.", n))
				last := c.ask(t, s.Upstream, pair[n%2])
				if strings.Count(last, "REPO-KNOWN") != 1 || strings.Count(last, "FERRY-KNOWN") != 1 || strings.Count(last, "HARBOUR-KNOWN") != 1 ||
					strings.Contains(last, "FERRY-CHANGED") || strings.Count(last, "</EXTRA_INFO>") != 3 {
					t.Fatalf("question %d went as %s", n, last)
				}
				if n == 11 && len(list(t, last)) >= len(c.said) {
					t.Error("nothing was condensed")
				}
			}
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					t.Errorf("a request was refused: %v", r.Refused)
				}
			}
		})
	}
}

// TestKnowledgeReloads: a changed file applies to later messages. An unreadable file changes nothing, and is an error at startup.
func TestKnowledgeReloads(t *testing.T) {
	folder := shelf(t)
	s := newSetting(t, fakeupstream.Options{})
	config := s.knowing(t, embedded(newStore(t)), folder)
	p := serve(t, "--config", config)
	asks := func(text string) string {
		c := &speaker{path: "/chat/completions"}
		c.says("user", text)
		return c.ask(t, s.Upstream, p)
	}
	ok(t, os.Mkdir(filepath.Join(folder, "more"), 0o700))
	p.await("knowledge reloaded")
	writeFile(t, filepath.Join(folder, "more"), "tram.md", "---\ntriggers: [tram]\n---\nTRAM-KNOWN\n")
	sessiontest.Eventually(t, "the new file is read", func() error {
		if got := asks("How about a tram?"); !strings.Contains(got, "TRAM-KNOWN") {
			return fmt.Errorf("went as %s", got)
		}
		return nil
	})
	writeFile(t, folder, "ferry.md", "---\ntriggers: {\n---\nbroken\n")
	p.await("knowledge not reloaded")
	if got := asks("And a ferry on the day after?"); !strings.Contains(got, "FERRY-KNOWN") {
		t.Errorf("after a broken file: %s", got)
	}
	p.kill()
	if f := command(t, "--config", config); f.Code == 0 || !strings.Contains(f.Err+f.Out, "ferry.md") {
		t.Errorf("a start with a broken file: %d %s%s", f.Code, f.Out, f.Err)
	}
}

// TestHostileKnowledge: a file whose aliases stand for millions of values is refused without taking memory, and the old texts stay in use.
func TestHostileKnowledge(t *testing.T) {
	t.Parallel()
	const most = 128 << 20 // bytes of the proxy's heap at its largest
	folder := shelf(t)
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.knowing(t, embedded(newStore(t)), folder))
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%[1]c [%s*%c]\n", c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	writeFile(t, folder, "bomb.md", "---\n"+bomb+"triggers: *h\n---\nBOMB\n")
	p.await("knowledge not reloaded")
	if heap := p.metric("go_memstats_heap_sys_bytes"); heap > most {
		t.Errorf("the heap grew to %.0f bytes for a file of %d", heap, len(bomb))
	}
	c := &speaker{path: "/chat/completions"}
	c.says("user", "When is the ferry?")
	if got := c.ask(t, s.Upstream, p); !strings.Contains(got, "FERRY-KNOWN") || strings.Contains(got, "BOMB") {
		t.Errorf("went as %s", got)
	}
}

// TestKnowledgeForSomeRequests: further folders are for requests with a header or a session key, in all protocols.
func TestKnowledgeForSomeRequests(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	folders := map[string]string{}
	for _, name := range []string{"common", "payments", "web", "both"} {
		folders[name] = t.TempDir()
		writeFile(t, folders[name], name+".md", "The key is "+strings.ToUpper(name)+"-KNOWN.\n")
	}
	p := serve(t, "--config", s.writeType(t, embedded(newStore(t)), "type: excerpts", fmt.Sprintf(`
knowledge:
  folder: %q
  also:
    - {folder: %q, header: "X-Project: payments"}
    - {folder: %q, sessions: "web-*"}
    - {folder: %q, header: "X-Project: payments", sessions: "web-*"}
`, folders["common"], folders["payments"], folders["web"], folders["both"])))
	for _, wire := range []string{"/chat/completions", "/messages", "/responses"} {
		for _, c := range []struct{ project, session, want string }{
			{"", "", "COMMON"}, {"payments", "", "COMMON PAYMENTS"}, {"other", "web", "COMMON"}, {"", "web-1", "COMMON WEB"},
			{"payments", "web-2", "COMMON PAYMENTS WEB BOTH"},
		} {
			speaks := &speaker{path: wire}
			speaks.says("user", fmt.Sprint("Hello from ", c.project, " ", c.session))
			header := http.Header{}
			if c.project != "" {
				header.Set("X-Project", c.project)
			}
			if c.session != "" {
				header.Set("X-Dewpoint-Session", c.session)
			}
			ok(t, sendTo(t, p, wire, encode(speaks.body()), header).finish())
			var got []string
			sent := string(lastBody(s.Upstream))
			for _, name := range []string{"COMMON", "PAYMENTS", "WEB", "BOTH"} {
				if strings.Contains(sent, name+"-KNOWN") {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s, project %q, session %q: added %v, want %s", wire, c.project, c.session, got, c.want)
			}
		}
	}
}
