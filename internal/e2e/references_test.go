package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
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

// TestReferencesAreRead: messages of the model that the client only refers to are logged, counted, and condensed like any other, also by a
// process that has not seen them.
func TestReferencesAreRead(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: fmt.Sprintf("Depot %d has the code XK-%d-QUINCE. ", r.Index, 7000+r.Index) + strings.Repeat("It is far away. ", 20)}
	}})
	config := s.configAt(t, embedded(newStore(t)), 14)
	client := &referrer{t: t}
	p := serve(t, "--config", config)
	for range 5 {
		client.ask(p)
	}
	id := p.listed()
	p.terminate()
	p.wait()
	p = serve(t, "--config", config)
	for client.asked < 7 {
		client.ask(p)
	}
	if condensed := client.ask(p).Get("X-Dewpoint-Condensed"); condensed == "" {
		t.Fatalf("nothing was condensed at %d items", len(client.items))
	}
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			t.Errorf("it was refused: %v", r.Refused)
		}
		if r.Summary && !bytes.Contains(r.Body, []byte("XK-7002-QUINCE")) {
			t.Errorf("the summary was written without what the model had said: %s", r.Body)
		}
	}
	var page struct {
		Threads []struct{ ID string }
		Events  []struct{ Tokens int }
	}
	ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+id[0], http.StatusOK), &page))
	events := p.administer(http.MethodGet, "/sessions/"+id[0]+"/threads/"+page.Threads[0].ID+"/events?content=true", http.StatusOK)
	ok(t, json.Unmarshal(events, &page))
	if !bytes.Contains(events, []byte("XK-7002-QUINCE")) || page.Events[4].Tokens < 80 {
		t.Errorf("the log does not hold what the model said: %s", events)
	}
	if now := p.listed(); len(now) != 1 || now[0] != id[0] {
		t.Errorf("sessions are %v, was %v", now, id)
	}
}
