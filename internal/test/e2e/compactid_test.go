package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// restart ends the process and starts another one with the same settings.
func (p *process) restart(config string) *process {
	p.t.Helper()
	p.terminate()
	p.wait()
	return serve(p.t, "--config", config)
}

// TestCompactionByID: a client requests a compaction by the id of its newest response, without the history. Whether upstream or Dewpoint makes
// the compaction, the run stays in its session. If upstream does not, its model writes a record, and the user's words come from the log.
func TestCompactionByID(t *testing.T) {
	t.Parallel()
	const written = "CURRENT_STATE: the importer is next, since two of its tests fail; one of them is about dates."
	for name, c := range map[string]struct {
		record  string // the record that the model writes; empty: upstream compacts
		unknown bool   // the responses are not in the log
		failed  bool   // there is nothing to compact
	}{
		"upstream's":                     {},
		"upstream's, of unknown history": {unknown: true},
		"ours":                           {record: written},
		"ours, of unknown history":       {record: written, unknown: true},
		"excerpts":                       {record: "I cannot help with that."},
		"excerpts of unknown history":    {record: "I cannot help with that.", unknown: true, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			if c.record != "" {
				s = newNoCompactor(t, c.record)
			}
			config := s.configAt(t, embedded(newStore(t)), 1000)
			p := serve(t, "--config", config)
			var session, thread string
			send := func(path, body string) (text string) {
				t.Helper()
				a := sendTo(t, p, path, []byte(body))
				text, err := a.rest()
				ok(t, err)
				session, thread = a.Header.Get("X-Dewpoint-Session"), a.Header.Get("X-Dewpoint-Thread")
				if why := a.Header.Get("X-Dewpoint-Unread"); why != "" || session == "" {
					t.Errorf("%s: unread: %q, in session %q", body, why, session)
				}
				return text
			}
			ask := func(rest string) (id string) {
				t.Helper()
				var answer struct{ ID string }
				ok(t, json.Unmarshal([]byte(send("/responses", `{"model":"gpt-x","instructions":"Be brief.",`+rest+`}`)), &answer))
				return answer.ID
			}
			typed := []string{"Never touch internal/legacy; the ticket is TRK-1177.", "And leave the dates in UTC."}
			id := ask(fmt.Sprintf(`"input":%q`, typed[0]))
			earlier := id
			if c.unknown {
				config = s.configAt(t, embedded(newStore(t)), 1000)
			} else {
				id = ask(fmt.Sprintf(`"previous_response_id":%q,"input":%q`, id, typed[1]))
			}
			p = p.restart(config)
			first, main := session, thread

			body := fmt.Sprintf(`{"model":"gpt-x","previous_response_id":%q}`, id)
			if c.failed {
				req, a := post(t, p, []byte(body))
				req.URL.Path = "/v1/responses/compact"
				resp, err := a.client.RoundTrip(req)
				ok(t, err)
				a.Response = resp
				if text, _ := a.rest(); resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, "compaction_failed") {
					t.Errorf("%d %s", resp.StatusCode, text)
				}
				return
			}
			text := send("/responses/compact", body)
			var compacted struct{ Output []json.RawMessage }
			if err := json.Unmarshal([]byte(text), &compacted); err != nil || len(compacted.Output) != 1 {
				t.Fatalf("answered %s", text)
			}
			asked := s.Upstream.Requests()[len(s.Upstream.Requests())-1]
			switch {
			case c.record == "" && string(asked.Body) != body:
				t.Errorf("forwarded %s", asked.Body)
			case c.record != "" && (!asksForRecord(&asked) || !strings.Contains(string(asked.Body), id)):
				t.Errorf("asked %s", asked.Body)
			}
			if c.unknown {
				first = session
			} else if session != first || thread != main {
				t.Errorf("the compaction is in thread %s of session %s, not %s of %s", thread, session, main, first)
			}

			want := []string{"system", "user", "answer", "agent", "user", "agent"}
			if c.unknown {
				want = nil
			}
			if logged := p.logged(session, thread); !slices.Equal(logged, want) {
				t.Errorf("logged %v", logged)
			}
			p = p.restart(config)
			ask(fmt.Sprintf(`"input":[%s,{"role":"user","content":"Go on."}]`, compacted.Output[0]))
			if sessions := p.listed(); session != first || len(sessions) != 1 {
				t.Errorf("the run goes on in session %s, it began in %s; there are %v", session, first, sessions)
			}
			forwarded := string(lastBody(s.Upstream))
			if c.record == "" {
				typed = []string{string(compacted.Output[0])}
			}
			if c.unknown && c.record != "" {
				typed = nil
			}
			if c.record == written {
				typed = append(typed, written)
			}
			for _, text := range append(typed, "Go on.") {
				if !strings.Contains(forwarded, text) {
					t.Errorf("%q is not in %s", text, forwarded)
				}
			}
			if c.unknown {
				return
			}
			ask(fmt.Sprintf(`"previous_response_id":%q,"input":"Another way."`, id))
			if session != first || thread != main {
				t.Errorf("the response is continued in thread %s of session %s, not %s of %s", thread, session, main, first)
			}
			if c.record == "" {
				return
			}
			text = send("/responses/compact", fmt.Sprintf(`{"model":"gpt-x","previous_response_id":%q}`, earlier))
			record := string(p.administerWith([]byte(`{"sealed":"`+sealedIn.FindString(text)+`"}`), http.MethodPost, "/unseal", http.StatusOK))
			if session != first || !strings.Contains(record, typed[0]) || strings.Contains(record, typed[1]) {
				t.Errorf("in session %s, the record of the first response is %s", session, record)
			}
		})
	}
}
