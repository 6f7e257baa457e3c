package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// administer calls the admin API as an operator and returns the body of the answer.
func (p *process) administer(method, path string, status int) []byte {
	p.t.Helper()
	return p.administerWith(nil, method, path, status)
}

// administerWith is administer with a body.
func (p *process) administerWith(content []byte, method, path string, status int) []byte {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.Admin+"/api/v1"+path, bytes.NewReader(content))
	ok(p.t, err)
	req.Header.Set("X-Dewpoint-Admin", "1")
	if token := p.startToken(); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	ok(p.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(p.t, err)
	if resp.StatusCode != status {
		p.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return text
}

// listed returns the sessions that the admin API lists.
func (p *process) listed() (ids []string) {
	p.t.Helper()
	var page struct{ Sessions []struct{ ID string } }
	ok(p.t, json.Unmarshal(p.administer(http.MethodGet, "/sessions", http.StatusOK), &page))
	for _, s := range page.Sessions {
		ids = append(ids, s.ID)
	}
	return ids
}

// TestOperator plays a run, inspects it, has it condensed, and deletes it. The next request begins a new session.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Keep: 16})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	l := &line{to: func(exchange) *process { return p }}
	run := beginning(36)
	report := l.play(t, run, judge.Options{Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{MaxSize: maxSize}})
	at := l.placed[0]
	if ids := p.listed(); len(ids) != 1 || ids[0] != at.Session || report.Condensed == 0 {
		t.Fatalf("listed %v of %d condensations, played in %s", ids, report.Condensed, at.Session)
	}
	thread := "/sessions/" + at.Session + "/threads/" + at.Thread
	p.viewIsForwarded(s, thread)

	p.administer(http.MethodPost, thread+"/condense", http.StatusAccepted)
	next := beginning(37).Messages
	answer := send(t, p, body(next))
	ok(t, answer.finish())
	if got := answer.Header.Get("X-Dewpoint-Condensed"); len(got) < 7 || got[:7] != "request" {
		t.Errorf("condensed %q", got)
	}
	p.viewIsForwarded(s, thread)

	p.administer(http.MethodDelete, "/sessions/"+at.Session, http.StatusNoContent)
	if ids := p.listed(); len(ids) != 0 {
		t.Errorf("still listed: %v", ids)
	}
	anew := send(t, p, body(next[:2]))
	ok(t, anew.finish())
	var record struct{ Length, Condensations int }
	path := fmt.Sprintf("/sessions/%s/threads/%s", anew.Header.Get("X-Dewpoint-Session"), anew.Header.Get("X-Dewpoint-Thread"))
	ok(t, json.Unmarshal(p.administer(http.MethodGet, path, http.StatusOK), &record))
	if record.Length != 1 || record.Condensations != 0 {
		t.Errorf("it did not begin anew: %+v", record)
	}
	checkFileHolds(t, p, 1)
}

// viewIsForwarded checks that a thread's view equals the last forwarded request.
func (p *process) viewIsForwarded(s *setting, thread string) {
	p.t.Helper()
	var view struct {
		Items []struct{ Message json.RawMessage }
	}
	ok(p.t, json.Unmarshal(p.administer(http.MethodGet, thread+"/view", http.StatusOK), &view))
	var sent struct{ Messages []json.RawMessage }
	ok(p.t, json.Unmarshal(lastBody(s.Upstream), &sent))
	if len(view.Items) != len(sent.Messages) {
		p.t.Fatalf("%d messages in the view, upstream got %d", len(view.Items), len(sent.Messages))
	}
	for i, item := range view.Items {
		if !bytes.Equal(item.Message, sent.Messages[i]) {
			p.t.Errorf("message %d of the view is %.200s, upstream got %.200s", i, item.Message, sent.Messages[i])
		}
	}
}

// checkFileHolds stops a proxy and counts the sessions that another one finds in its file.
func checkFileHolds(t testing.TB, p *process, want int) {
	t.Helper()
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	again := serve(t, p.command.Args[1:]...)
	if ids := again.listed(); len(ids) != want {
		t.Errorf("after a restart: %v", ids)
	}
}

// operatorToken is the environment variable that sets the token of operators.
const operatorToken = "DEWPOINT_ADMIN_TOKEN"

// serveOperators starts a proxy with a token for operators. A proxy with Redis needs one: it writes that of its start into no file.
func serveOperators(t testing.TB, config string) *process {
	t.Helper()
	return serveUnder(t, []string{operatorToken + "=an-operators-token"}, "--config", config)
}

// startToken returns the token of operators in the environment of the process, or the one that it announces beside its embedded store; "" if there
// is none.
func (p *process) startToken() string {
	for _, variable := range p.command.Env {
		if value, is := strings.CutPrefix(variable, operatorToken+"="); is {
			return value
		}
	}
	folder := fmt.Sprintf("/proc/%d/fd", p.command.Process.Pid)
	open, _ := os.ReadDir(folder)
	for _, file := range open {
		path, _ := os.Readlink(filepath.Join(folder, file.Name()))
		if filepath.Ext(path) != ".lock" {
			continue
		}
		text, err := os.ReadFile(path)
		ok(p.t, err)
		if fields := strings.Fields(string(text)); len(fields) > 6 && fields[6] != "-" {
			return fields[6]
		}
	}
	return ""
}
