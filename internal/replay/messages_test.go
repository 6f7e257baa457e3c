package replay_test

import (
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// TestMessagesAPI plays the sample in the Messages API under every kind of condenser, streamed and not, with signed thinking and
// without: it condenses as in Chat Completions, the strict upstream takes every request, no answer is altered, and the log has it all.
func TestMessagesAPI(t *testing.T) {
	for name, condenser := range condensers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chat := playMessages(t, condenser, fakeupstream.Options{}, replay.Options{Protocol: "chat"})
			for streamed, form := range map[bool]fakeupstream.Seal{false: "", true: fakeupstream.SealThinkingBlocks} {
				report := playMessages(t, condenser, fakeupstream.Options{Seals: form}, replay.Options{
					Protocol: "messages", Stream: streamed, Sealed: form != "",
				})
				if report.Condensations != chat.Condensations {
					t.Errorf("streamed %t, sealed %q: %d condensations, %d in Chat Completions", streamed, form, report.Condensations, chat.Condensations)
				}
				if len(chat.Violations) > 0 {
					continue // some condensers change the prefix at every step, which the judge does not know
				}
				for _, v := range report.Violations {
					t.Errorf("streamed %t, sealed %q: %v", streamed, form, v)
				}
			}
		})
	}
}

// TestMessagesOverflow: an overflow is told in Anthropic's words, and relieved.
func TestMessagesOverflow(t *testing.T) {
	condenser := config.Condenser{Type: config.TypeLLM, LLMConfig: "cheap", MaxSize: 1000, KeepFirst: 2}
	report := playMessages(t, condenser, fakeupstream.Options{ContextWindow: 12000}, replay.Options{
		Protocol: "messages", Model: "a-model-of-ours", Window: 12000,
	})
	if report.Overflows == 0 || report.Condensations == 0 {
		t.Errorf("%d overflows, %d condensations", report.Overflows, report.Condensations)
	}
	for _, v := range report.Violations {
		t.Error(v)
	}
}

// playMessages plays the sample, and fails the test if a step fails or the log lacks anything.
func playMessages(t *testing.T, condenser config.Condenser, up fakeupstream.Options, o replay.Options) replay.Report {
	t.Helper()
	cfg := config.Default()
	cfg.Condenser = condenser
	up.Keep = 16
	stage, err := replay.NewStage(*cfg, up)
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Upstream, o.Expect.Summariser = func(int) string { return stage.URL() }, stage.Upstream, replay.Summariser
	if o.Model == "" {
		o.Model = replay.Model
	}
	report, err := replay.Play(t.Context(), demo.Sample(), o)
	what := fmt.Sprintf("%s, streamed %t, sealed %q", o.Protocol, o.Stream, up.Seals)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if err == nil {
		if err := stage.CheckLog(t.Context(), report); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	return report
}
