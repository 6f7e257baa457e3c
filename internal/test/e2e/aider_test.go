package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// aider sends requests like Aider 0.86: with a map of the repository before the history and the files after it, both new in each
// request, and with the end of the system prompt repeated after the newest message, for that request only.
type aider struct {
	done []any
	step int
}

const (
	aidersMap   = "Here are summaries of some files present in my git repository.\n"
	aidersFiles = "I have *added these files to the chat* so you can go ahead and edit them.\n\n"
)

func said(role, text string) any { return map[string]string{"role": role, "content": text} }

func (a *aider) messages() (all []json.RawMessage) {
	reminder := strings.Repeat("Each change is a block with what is searched for and what takes its place.\n", 20)
	messages := []any{
		said("system", "Act as an expert programmer.\n"+reminder),
		said("user", aidersMap+strings.Repeat("parser.go: Parse, Next\n", 5+a.step)), said("assistant", "Ok, I won't edit those without asking first."),
	}
	messages = append(messages, a.done...)
	for _, m := range append(messages, said("user", aidersFiles+strings.Repeat("func Parse() {}\n", 10+a.step)), said("assistant", "Ok."),
		said("user", a.task()+"\n\n"+reminder)) {
		all = append(all, encode(m))
	}
	return all
}

func (a *aider) task() string {
	return fmt.Sprintf("Task %d: count what is parsed. ", a.step) + strings.Repeat("And so on. ", 20)
}

// answered appends the answer to the history.
func (a *aider) answered(text string) {
	a.done = append(a.done, said("user", a.task()), said("assistant", text),
		said("user", fmt.Sprintf("I committed the changes with git hash %07x.", a.step)), said("assistant", "Ok."))
	a.step++
}

// TestAider: all requests of an Aider run are in one thread. Its condensations persist, its files are always forwarded, and its token counts
// equal those of a history seen for the first time.
func TestAider(t *testing.T) {
	for name, alternates := range map[string]bool{"free": false, "alternating": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			s := newSetting(t, fakeupstream.Options{Alternates: alternates, Reply: func(*fakeupstream.Request) fakeupstream.Answer {
				n++
				return fakeupstream.Answer{OmitUsage: true, Content: fmt.Sprintf("I have changed parser.go as you asked for, and its test; this is answer %d.", n)}
			}})
			p := serve(t, "--config", s.config(t, embedded(newStore(t))+fmt.Sprintf(
				"\nmodels: {%s: {context_window: 128000, max_output: 16384, alternate_roles: %t}}", judge.Model, alternates)))
			var a aider
			threads, condensed := map[string]bool{}, 0
			for range 24 {
				sent := body(a.messages())
				fresh := send(t, p, sent, http.Header{"X-Dewpoint-Session": {fmt.Sprint("fresh-", a.step)}, "X-Dewpoint-Condense": {"off"}})
				ok(t, fresh.finish())
				answer := send(t, p, sent)
				text, err := answer.rest()
				ok(t, err)
				threads[answer.Header.Get("X-Dewpoint-Thread")] = true
				condensed += len(answer.Header.Values("X-Dewpoint-Condensed"))
				counted := func(h http.Header) string {
					before, _, _ := strings.Cut(h.Get("X-Dewpoint-Tokens"), ";")
					return before
				}
				if got, want := counted(answer.Header), counted(fresh.Header); got != want {
					t.Errorf("step %d: %s tokens, %s where it is new", a.step, got, want)
				}
				if got := string(lastBody(s.Upstream)); !strings.Contains(got, strings.Repeat("func Parse() {}\\n", 10+a.step)) {
					t.Errorf("step %d: forwarded without its files: %s", a.step, got)
				}
				var whole struct {
					Choices []struct{ Message struct{ Content string } }
				}
				ok(t, json.Unmarshal([]byte(text), &whole))
				a.answered(whole.Choices[0].Message.Content)
			}
			if calls := s.Upstream.SummariserCalls(); len(threads) != 1 || condensed < 3 || calls != condensed || refusals(s.Upstream) > 0 {
				t.Errorf("%d threads, %d condensations, %d calls of the summariser, %d refusals", len(threads), condensed, calls, refusals(s.Upstream))
			}
		})
	}
}
