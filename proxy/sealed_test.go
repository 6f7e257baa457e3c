package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// sealedTalk is a condensed conversation with an upstream whose answers carry sealed reasoning.
type sealedTalk struct {
	*rig
	history []string
}

func talkSealed(t *testing.T) *sealedTalk { return talkSealedOver(t, nil) }

// talkSealedOver is sealedTalk with a wrapped store; nil wraps nothing.
func talkSealedOver(t *testing.T, store func(session.Store) session.Store) *sealedTalk {
	s := &sealedTalk{condensing(t, setup{upstream: fakeupstream.Options{Seals: fakeupstream.SealThinkingBlocks}, store: store}), nil}
	s.history = append(s.history, say("system", "You help."))
	for len(s.history) < 15 {
		s.next()
	}
	if got := len(s.forwarded().Messages); got >= len(s.history)-1 {
		t.Fatalf("%d of %d messages forwarded: nothing was condensed", got, len(s.history)-1)
	}
	return s
}

// next sends the next question, which must be answered.
func (s *sealedTalk) next(header ...string) *http.Response {
	s.t.Helper()
	return s.send(say("user", fmt.Sprintf("question %d %s", len(s.history), strings.Repeat("and so on ", 40))), header...)
}

// send sends the next message with thinking switched on by hand, and keeps the answer.
func (s *sealedTalk) send(message string, header ...string) *http.Response {
	s.t.Helper()
	s.history = append(s.history, message)
	body := strings.Replace(messages(s.history...), "{", `{"thinking":{"type":"enabled","budget_tokens":9},`, 1)
	resp, answer := s.ask(body, header...)
	var a struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%d messages: %s, %v", len(s.history), answer, err)
	}
	s.history = append(s.history, string(a.Choices[0].Message))
	return resp
}

// wantCondensedAgain checks that the next requests are condensed and accepted at once.
func (s *sealedTalk) wantCondensedAgain() {
	s.t.Helper()
	before := s.refusals()
	for range 3 {
		s.next()
		if got := len(s.forwarded().Messages); got >= len(s.history)-1 {
			s.t.Errorf("%d of %d messages forwarded: not condensed", got, len(s.history)-1)
		}
	}
	if got := s.refusals() - before; got != 0 {
		s.t.Errorf("%d more requests were refused", got)
	}
}

// TestUnchangedAfterSealedAnswers: reasoning that was made under a condensed history is bound to it. A history that is forwarded unchanged
// goes without that reasoning, but with the reasoning made for it since, which in turn is not shown under the condensed history.
func TestUnchangedAfterSealedAnswers(t *testing.T) {
	s := talkSealed(t)
	s.next()
	for n := range 2 {
		s.next("X-Dewpoint-Condense", "off")
		if got := s.forwarded(); len(got.Messages) != len(s.history)-1 || strings.Count(string(got.Body), "signature") != n {
			t.Errorf("forwarded %d messages of %d: %s", len(got.Messages), len(s.history)-1, got.Body)
		}
	}
	s.wantCondensedAgain()
}

// TestRefusedAfterSealedAnswers: the same if upstream refuses the condensed history for another reason.
func TestRefusedAfterSealedAnswers(t *testing.T) {
	s := talkSealed(t)
	s.next()
	s.up.Script(fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "not like this"}})
	resp := s.next("X-Dewpoint-Condense", "now")
	if got := len(s.forwarded().Messages); got != len(s.history)-1 {
		t.Errorf("%d of %d messages forwarded", got, len(s.history)-1)
	}
	if got := resp.Header.Get("X-Dewpoint-Condensed"); got != "" {
		t.Errorf("condensed %q although the body went as it came", got)
	}
	s.next("X-Dewpoint-Condense", "now") // else what was refused is not tried for a while
	s.wantCondensedAgain()
}

// TestLoopThatBeganUnchangedStaysUnchanged: a tool loop that began with an unchanged history goes on so, with its own reasoning, which upstream requires,
// and without reasoning from before it.
func TestLoopThatBeganUnchangedStaysUnchanged(t *testing.T) {
	s := talkSealed(t)
	s.next()
	call := func(n int) fakeupstream.Answer {
		return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: fmt.Sprint("call_", n), Name: "look", Arguments: "{}"}}}
	}
	s.up.Script(call(0), call(1), call(2), fakeupstream.Answer{Content: "Seen."})
	s.next("X-Dewpoint-Condense", "off")
	for n := range 3 {
		s.send(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":"a ship"}`, n))
		if got := s.forwarded(); strings.Count(string(got.Body), "signature") != n+1 {
			t.Errorf("step %d: forwarded %s", n, got.Body)
		}
	}
	s.wantCondensedAgain()
}

// elsewhere is a store that can be made unavailable.
type elsewhere struct {
	session.Store
	away atomic.Bool
}

func (e *elsewhere) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	if e.away.Load() {
		return session.Found{}, fmt.Errorf("find: %w", session.ErrUnavailable)
	}
	return e.Store.Find(ctx, hashes, hint, traces...)
}

// TestReasoningIsStrippedAfterARefusalWhileTheStoreIsAway: without the store it is not known that answers are bound to a condensed history. Upstream refuses
// the unchanged history, and accepts it without their reasoning.
func TestReasoningIsStrippedAfterARefusalWhileTheStoreIsAway(t *testing.T) {
	var store elsewhere
	s := talkSealedOver(t, func(of session.Store) session.Store { store.Store = of; return &store })
	s.next()
	store.away.Store(true)
	for range 2 {
		if resp := s.next(); resp.Header.Get("X-Dewpoint-Thread") != "" {
			t.Error("the thread is known: the store is not away")
		}
		if got := s.forwarded(); len(got.Messages) != len(s.history)-1 || strings.Contains(string(got.Body), "signature") {
			t.Errorf("forwarded %d messages of %d: %s", len(got.Messages), len(s.history)-1, got.Body)
		}
	}
	refused := s.refusals()
	s.up.Script(fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "not like this"}})
	if resp, _ := s.ask(messages(say("user", "without any reasoning"))); resp.StatusCode != http.StatusBadRequest || s.refusals() != refused {
		t.Errorf("status %d, %d requests", resp.StatusCode, s.refusals()-refused)
	}
}

// TestReasoningOfUnknownAnswersIsStrippedAfterARefusal: the same if the store does not have the conversation, or no longer has it, or has it in another
// session's scope.
func TestReasoningOfUnknownAnswersIsStrippedAfterARefusal(t *testing.T) {
	s := talkSealed(t)
	s.next()
	before := s.refusals()
	for range 4 {
		s.next("X-Dewpoint-Session", "another", "X-Dewpoint-Condense", "off")
	}
	if got := s.refusals() - before; got != 1 {
		t.Errorf("%d requests were refused, want the first", got)
	}
	for range 4 {
		s.next("X-Dewpoint-Session", "another")
	}
	if got := s.refusals() - before; got != 1 {
		t.Errorf("%d more requests were refused", got-1)
	}
}

// TestUnchangedHistoryIsRefusedForItsReasoningOnce: a condensed conversation that is now forwarded unchanged is refused once for the reasoning made under the
// condensed history, not with every request.
func TestUnchangedHistoryIsRefusedForItsReasoningOnce(t *testing.T) {
	s := talkSealed(t)
	s.next()
	before := s.refusals()
	for range 4 {
		s.next("X-Dewpoint-Condense", "off")
	}
	if got := s.refusals() - before; got != 1 {
		t.Errorf("%d requests were refused, want the first", got)
	}
	if got := strings.Count(string(s.forwarded().Body), "signature"); got != 3 {
		t.Errorf("%d signatures, want those of the answers since: %s", got, s.forwarded().Body)
	}
	s.wantCondensedAgain()
}

// TestLoopThatUpstreamRefusedIsNotRefusedAgain: if the condensed history is refused for another reason, the next requests go at once as upstream accepted
// this one: whole, without the reasoning that is bound to the condensed history.
func TestLoopThatUpstreamRefusedIsNotRefusedAgain(t *testing.T) {
	s := talkSealed(t)
	s.next()
	s.up.Script(fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "not like this"}})
	s.next("X-Dewpoint-Condense", "now")
	before := s.refusals()
	for range 4 {
		s.next()
		if got := len(s.forwarded().Messages); got != len(s.history)-1 {
			t.Errorf("%d of %d messages forwarded", got, len(s.history)-1)
		}
	}
	if got := s.refusals() - before; got != 0 {
		t.Errorf("%d more requests were refused", got)
	}
}

// TestManualThinkingUnderShapes: with thinking switched on by hand, a condenser whose view changes with each request shows the same view
// while a tool loop is open, since its answers are bound to it. Upstream refuses nothing.
func TestManualThinkingUnderShapes(t *testing.T) {
	masking, recent := condense.ObservationMasking{AttentionWindow: 4}, condense.RecentEvents{KeepFirst: 1, MaxEvents: 12}
	for name, c := range map[string]condense.Condenser{
		"masking": masking, "recent": recent, "browser": condense.BrowserOutput{AttentionWindow: 1},
		"masking+recent": condense.Pipeline{Stages: []condense.Condenser{masking, recent}},
		"masking+llm":    condense.Pipeline{Stages: []condense.Condenser{masking, llm(0, "", patience)}},
		"trim+masking":   condense.Pipeline{Stages: []condense.Condenser{condense.ToolOutputTrim{MaxEventLength: 300}, masking}},
		"recent+window":  condense.Pipeline{Stages: []condense.Condenser{recent, condense.ConversationWindow{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sealedTalk{condensing(t, setup{condenser: c, upstream: fakeupstream.Options{Seals: fakeupstream.SealThinkingBlocks}}), nil}
			s.history = append(s.history, say("system", "You help."))
			shaped := false
			for turn := range 6 {
				for step := range 4 {
					s.up.Script(fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: fmt.Sprintf("call_%d_%d", turn, step), Name: "fetch", Arguments: "{}"}}})
				}
				s.next()
				last := s.openBody()
				for step := range 4 {
					s.send(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d_%d","content":%q}`, turn, step, strings.Repeat("a long result ", 40)))
					if now := s.openBody(); !strings.HasPrefix(now, last) {
						t.Errorf("turn %d, step %d: another prefix:\n%.3000s\nbefore:\n%.3000s", turn, step, now, last)
					} else {
						last = now
					}
				}
				shaped = shaped || len(last) < len(strings.Join(s.history, ","))/2
			}
			if got := s.refusals(); got > 0 || !shaped {
				t.Errorf("%d requests were refused, shaped %t", got, shaped)
			}
		})
	}
}

// openBody returns the last forwarded body without its end.
func (s *sealedTalk) openBody() string { return strings.TrimSuffix(string(s.forwarded().Body), "]}") }
