package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// member is one of many concurrent conversations.
type member struct {
	name      string
	history   []json.RawMessage
	condensed int    // requests with a condensed view
	sent      string // the last forwarded request
}

func newMember(n int) *member {
	return &member{name: fmt.Sprintf("member %02d.", n)}
}

// fleet is a set of conversations over two replicas.
type fleet struct {
	*testing.T
	*setting
	config   string
	replicas [2]*process
	members  []*member
	held     chan struct{} // closed once the first summary of every other member is answered
	mu       sync.Mutex
	asked    map[string]int // calls of the summariser, by member
}

func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	f := &fleet{T: t, held: make(chan struct{}), asked: map[string]int{}}
	for n := range size {
		f.members = append(f.members, newMember(n))
	}
	f.setting = newSetting(t, fakeupstream.Options{Summarise: f.summarise})
	f.config = writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s, timeout: 10m}}
condenser: {type: llm, llm_config: cheap, max_size: %d, min_tokens: 0}
shutdown: {delay: 0s, timeout: 1m}
`, f.url, inRedis(sessiontest.StartRedis(t).Addr), judge.Summariser, maxSize))
	f.replicas = [2]*process{serve(t, "--config", f.config), serve(t, "--config", f.config)}
	return f
}

// calls returns how often a summary for a member was requested so far. Summaries may still be in preparation.
func (f *fleet) calls(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[name]
}

// summarise answers slowly to the first call for every other member.
func (f *fleet) summarise(r *fakeupstream.Request) fakeupstream.Answer {
	answer := fakeupstream.Extract(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, m := range f.members {
		if !strings.Contains(r.Text(), m.name) {
			continue
		}
		if f.asked[m.name]++; n%2 == 1 && f.asked[m.name] == 1 {
			answer.Fault.HoldHeaders = f.held
		}
	}
	return answer
}

// step sends one more message for each member, several at once.
func (f *fleet) step(number int) {
	f.Helper()
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	for n, m := range f.members {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			f.say(m, f.replicas[(n+number)%2], number)
		})
	}
	all.Wait()
}

func (f *fleet) say(m *member, to *process, number int) {
	text := fmt.Sprintf("%s Question %d. %s", m.name, number, strings.Repeat("The sea is deep. ", 12))
	m.history = append(m.history, encode(map[string]any{"role": "user", "content": text}))
	a := send(f, to, body(m.history))
	var got struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.NewDecoder(a.Body).Decode(&got); err != nil || len(got.Choices) != 1 {
		f.Errorf("%s step %d: %v", m.name, number, err)
		return
	}
	if a.Header.Get("X-Dewpoint-Condensed") != "" {
		m.condensed++
	}
	m.history = append(m.history, got.Choices[0].Message)
}

// settle waits until the summariser has answered all its calls, since on a busy machine the steps overtake it.
func (f *fleet) settle() {
	f.Helper()
	if _, err := f.Upstream.WaitEnded(f.Context(), len(f.Upstream.Requests())); err != nil {
		f.Fatal(err)
	}
}

// forwarded records the last forwarded request of each member.
func (f *fleet) forwarded() {
	for _, r := range f.Upstream.Requests() {
		for _, m := range f.members {
			if !r.Summary && r.Status == http.StatusOK && strings.Contains(string(r.Body), m.name) {
				m.sent = string(r.Body)
			}
		}
	}
}

// TestNoRequestWaitsForASummary: by default summaries are prepared in advance. If one is not ready in time, because the
// summariser is slow or a replica died while preparing it, no request waits for it, and a later summary covers the messages.
func TestNoRequestWaitsForASummary(t *testing.T) {
	f := newFleet(t, 40)
	step := 0
	for ; step < 16; step++ {
		if step == 9 { // it holds the locks of the summaries that it prepares
			f.replicas[0].kill()
			f.replicas[0] = serve(t, "--config", f.config)
		}
		f.step(step)
	}
	f.forwarded()
	for n, m := range f.members {
		if m.condensed == 0 || !strings.Contains(m.sent, "dewpoint_record") {
			t.Errorf("%s nothing was condensed", m.name)
		}
		// The call comes late on a busy machine, or with a later request if the summary was left to that.
		for begun := time.Now(); n%2 == 1 && f.calls(m.name) == 0; step++ {
			if f.step(step); time.Since(begun) > patience {
				t.Fatalf("%s no summary was asked for", m.name)
			}
		}
	}
	close(f.held)
	left := len(f.members)
	for end := step + 40; left > 0 && step < end; step++ {
		f.step(step)
		f.settle()
		f.forwarded()
		left = 0
		for _, m := range f.members {
			if strings.Contains(m.sent, "NOT_SUMMARISED") {
				left++
			}
		}
	}
	if left > 0 {
		t.Errorf("%d members still lack a summary", left)
	}
	for _, m := range f.members {
		if calls := f.calls(m.name); calls == 0 || calls > m.condensed+2 { // one is in preparation, and one may have died with its replica
			t.Errorf("%s %d summaries for %d condensations", m.name, calls, m.condensed)
		}
	}
}

// TestSummariesAfterExcerpts: with no summaries prepared in advance, one is written as soon as excerpts have taken its place.
func TestSummariesAfterExcerpts(t *testing.T) {
	asked := make(chan struct{}, 10)
	s := newSetting(t, fakeupstream.Options{
		IsSummary: func(r *fakeupstream.Request) bool { return strings.Contains(r.Text(), "You keep the record of") },
		Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
			asked <- struct{}{}
			return fakeupstream.Answer{Content: "ok"}
		},
	})
	p := serve(t, "--config", s.writeWith(t, embedded(newStore(t)), "llm_config: cheap, max_size: 12, min_tokens: 0, background_at: 0", ""))
	var messages []json.RawMessage
	for n := range 13 {
		role := []string{"user", "assistant"}[n%2]
		messages = append(messages, encode(map[string]string{"role": role, "content": fmt.Sprint(n, strings.Repeat(" more of it", 100))}))
	}
	try(t, p, "/chat/completions", "one", map[string]any{"model": "gpt-4o", "messages": messages[:1]}) // a history that is sent once gets no summary
	o := try(t, p, "/chat/completions", "one", map[string]any{"model": "gpt-4o", "messages": messages})
	if condensed := o.Get("X-Dewpoint-Condensed"); !strings.HasSuffix(condensed, "provisional") && !strings.HasSuffix(condensed, "excerpts") {
		t.Fatalf("condensed %q: %d %s", condensed, o.status, o.text)
	}
	select {
	case <-asked:
	case <-time.After(patience):
		t.Error("no summary was asked for")
	}
}
