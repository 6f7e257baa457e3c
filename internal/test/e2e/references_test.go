package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// referrer is a client of the Responses API that refers to the model's messages by their ids, as Vercel's AI SDK does.
type referrer struct {
	t     *testing.T
	items []string
	asked int
}

// ask asks the next question.
func (r *referrer) ask(p *process) http.Header {
	r.t.Helper()
	r.items = append(r.items, fmt.Sprintf(`{"role":"user","content":"What is the code of depot %d?"}`, r.asked))
	r.asked++
	a := sendTo(r.t, p, "/responses", []byte(`{"model":"gpt-x","instructions":"You know the depots.","input":[`+strings.Join(r.items, ",")+`]}`))
	text, err := a.rest()
	ok(r.t, err)
	var answer struct{ Output []struct{ ID string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Output) != 1 {
		r.t.Fatalf("%d items were answered with %s", len(r.items), text)
	}
	r.items = append(r.items, fmt.Sprintf(`{"type":"item_reference","id":%q}`, answer.Output[0].ID))
	return a.Header
}

// TestReferencesAreRead: messages of the model that the client only refers to are logged, counted and condensed like all others, even by a process
// that has not seen them.
func TestReferencesAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		store     func(t *testing.T) string
		processes int
	}{
		"a restart": {func(t *testing.T) string { return embedded(newStore(t)) }, 1},
		"two processes over Redis, encrypted": {func(t *testing.T) string {
			return strings.Replace(inRedis(sessiontest.StartRedis(t).Addr), "{", "{encryption: {active: k1, keys: {k1: "+strings.Repeat("0a", 32)+"}}, ", 1)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
				return fakeupstream.Answer{Content: fmt.Sprintf("Depot %d has the code XK-%d-QUINCE. ", r.Index, 7000+r.Index) + strings.Repeat("It is far away. ", 20)}
			}})
			config := s.configAt(t, test.store(t), 14)
			client := &referrer{t: t}
			var all []*process
			for range test.processes {
				all = append(all, serveOperators(t, config))
			}
			for range 5 {
				client.ask(all[client.asked%len(all)])
			}
			id := all[0].listed()
			for i, p := range all {
				p.terminate()
				p.wait()
				all[i] = serveOperators(t, config)
			}
			for client.asked < 7 {
				client.ask(all[client.asked%len(all)])
			}
			if condensed := client.ask(all[0]).Get("X-Dewpoint-Condensed"); condensed == "" {
				t.Fatalf("nothing was condensed at %d items", len(client.items))
			}
			forgotten := []string{"XK-7001-QUINCE", "XK-7002-QUINCE", "XK-7003-QUINCE"}
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					t.Errorf("it was refused: %v", r.Refused)
				}
				for _, code := range forgotten {
					if r.Summary && !bytes.Contains(r.Body, []byte(code)) {
						t.Errorf("the summary was written without %s, which the model had said: %s", code, r.Body)
					}
				}
			}
			checkReferred(t, all[0], id[0])
			if now := all[0].listed(); len(now) != 1 || now[0] != id[0] {
				t.Errorf("sessions are %v, was %v", now, id)
			}
		})
	}
}

// checkReferred checks that the log of a session has all of the model's messages, with their token counts, except the newest answer.
func checkReferred(t *testing.T, p *process, id string) {
	t.Helper()
	var page struct {
		Threads []struct{ ID string }
		Events  []struct {
			Position, Tokens int
			Message          json.RawMessage
		}
	}
	ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+id, http.StatusOK), &page))
	ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+id+"/threads/"+page.Threads[0].ID+"/events?content=true", http.StatusOK), &page))
	for _, e := range page.Events {
		if e.Position > 0 && e.Position%2 == 0 && (e.Tokens < 80 || !bytes.Contains(e.Message, []byte("-QUINCE"))) {
			t.Errorf("the log has %d tokens at %d: %s", e.Tokens, e.Position, e.Message)
		}
	}
}

// TestRepeatedItemIDs: an item id that a server gave twice identifies nothing, so no run's log contains the model's messages of another run.
func TestRepeatedItemIDs(t *testing.T) {
	t.Parallel()
	p := serveBefore(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		depot := regexp.MustCompile(`depot \w+`).Find(body)
		_, _ = fmt.Fprintf(w, `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"local","output":[{"type":"message","id":"msg_1",`+
			`"role":"assistant","status":"completed","content":[{"type":"output_text","text":"The code of %s is QUINCE.","annotations":[]}]}],`+
			`"usage":{"input_tokens":9,"output_tokens":9,"total_tokens":18}}`, depot)
	}), "{type: noop}")
	ask := func(history ...string) {
		t.Helper()
		ok(t, sendTo(t, p, "/responses", []byte(`{"model":"local","input":[`+strings.Join(history, ",")+`]}`)).finish())
	}
	question := func(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
	const reference = `{"type":"item_reference","id":"msg_1"}`
	for _, depot := range []string{"north", "south"} {
		ask(question("What is the code of depot " + depot + "?"))
	}
	ask(question("What is the code of depot north?"), reference, question("Say it again."))
	for _, id := range p.listed() {
		var page struct {
			Threads []struct{ ID string }
			Events  []struct{ Message json.RawMessage }
		}
		ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+id, http.StatusOK), &page))
		ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+id+"/threads/"+page.Threads[0].ID+"/events?content=true", http.StatusOK), &page))
		log := fmt.Sprintf("%s", page.Events)
		if strings.Contains(log, "depot north") && strings.Contains(log, "depot south") {
			t.Errorf("the log of a run has what was said in another: %s", log)
		}
	}
}
