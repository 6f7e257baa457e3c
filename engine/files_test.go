package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// writing is a summariser whose summaries have a typical length.
type writing struct{}

func (writing) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	return condense.Reply{Text: "USER_CONTEXT: " + strings.Repeat("the sea is deep, ", 60), Finish: "stop"}, nil
}

// withFile is says(n) with a file in the second message that costs far more than we count.
func withFile(n int) *body {
	const file = `{"role":"user","content":[{"type":"text","text":"Read this."},{"type":"file","file":{"file_id":"file-abc123"}}]},`
	return &body{bytes: bytes.Replace(says(n).bytes, []byte(`{"role":"assistant"`), []byte(file+`{"role":"assistant"`), 1)}
}

// TestOverflowOnAFile: upstream's excess over our count is attributed to the file. Text costs the same as before: the summary is no longer
// than the messages it replaces, and the newest messages stay as far as they fit.
func TestOverflowOnAFile(t *testing.T) {
	const fileTokens, window = 30_000, 16_000
	r := newRig(t, condense.NewLLM(condense.LLMSettings{Settings: condense.Settings{KeepFirst: 1}, Summariser: writing{}, Model: "small"}))
	r.window = 128_000
	turn := r.begin(withFile(41), engine.WishNone)
	turn.Condense(t.Context())
	r.logged(turn)
	relief, _ := turn.overflow(t.Context(), overflow.Overflow{Limit: window, Prompt: turn.Sent().Tokens + fileTokens})
	report := turn.settle(t.Context(), true)
	if len(report.Attempts) != 1 || report.Attempts[0].Fallback != nil || report.Attempts[0].Made == nil {
		t.Fatalf("relief %+v, report %+v", relief, report)
	}
	if bytes.Contains(forwarded(turn), []byte(`"file_id"`)) {
		t.Error("the file is still sent")
	}
	if sent, before := turn.Sent().Tokens, turn.Turn().Before().Tokens; sent < before/2 {
		t.Errorf("of %d tokens of text %d are sent, although nearly all fit", before, sent)
	}
	next := r.begin(says(3), engine.WishNone)
	if got := next.Adjust(1000); got != 1000 {
		t.Errorf("a thousand tokens of text count as %d", got)
	}
}

// TestUsageOfFiles: calibration by requests with files applies only to requests with files. Our counts for them are estimates, which may be
// far too high, so upstream's is believed at once.
func TestUsageOfFiles(t *testing.T) {
	for theirs, want := range map[int]int{200: 2000, 50: 500, 10: 100} { // for each hundred tokens of ours
		r := newRig(t, condense.Noop{})
		for _, n := range []int{5, 7, 9} {
			turn := r.begin(withFile(n), engine.WishNone)
			r.logged(turn)
			ours := turn.Sent().Tokens
			report := turn.Used(ours, session.Usage{Input: ours * theirs / 100})
			if got := r.begin(withFile(n+2), engine.WishNone).Adjust(1000); got < want-5 || got > want || report.Doubted {
				t.Errorf("a thousand tokens count as %d, want %d: %+v", got, want, report)
			}
		}
		if got := r.begin(says(11), engine.WishNone).Adjust(1000); got != 1000 {
			t.Errorf("a thousand tokens of text count as %d", got)
		}
	}
}

// TestOverflowAfterSmallFiles: after files that cost almost nothing, an overflow does not make the window too small.
func TestOverflowAfterSmallFiles(t *testing.T) {
	r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}})
	turn := r.begin(withFile(5), engine.WishNone)
	r.logged(turn)
	turn.Used(turn.Sent().Tokens, session.Usage{Input: 30})
	turn = r.begin(withFile(41), engine.WishNone)
	r.logged(turn)
	before := turn.Sent().Tokens
	turn.overflow(t.Context(), overflow.Overflow{})
	if got := turn.settle(t.Context(), true).Window; got != before {
		t.Errorf("%d tokens were too many, and the window is taken for %d", before, got)
	}
}
