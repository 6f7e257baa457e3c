package engine_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// step runs a request with n messages, and reports an arbitrary count by upstream.
func (r *rig) step(n int, count func(ours int) session.Usage) (*request, engine.Report) {
	r.Helper()
	turn := r.begin(says(n), engine.WishNone)
	turn.Condense(r.Context())
	r.logged(turn)
	ours := turn.Sent().Tokens
	return turn, turn.Used(ours, count(ours))
}

func exactly(ours int) session.Usage { return session.Usage{Input: ours} }

// upTo returns the count of a server that cuts prompts, message by message, to that many tokens.
func upTo(window int) func(int) session.Usage {
	return func(ours int) session.Usage {
		if ours > window {
			return session.Usage{Input: window - ours%90}
		}
		return session.Usage{Input: ours}
	}
}

// TestUsageWithoutTheCachedPart: a count that leaves out tokens from upstream's cache does not change later counts, and is reported once.
func TestUsageWithoutTheCachedPart(t *testing.T) {
	r := newRig(t, condense.Noop{})
	r.step(21, exactly)
	said := 0
	for n := 23; n < 43; n += 2 {
		turn, report := r.step(n, func(int) session.Usage { return session.Usage{Input: 180} })
		if ours := turn.Sent().Tokens; turn.Adjust(ours) != ours || report.Window != 0 {
			t.Fatalf("%d tokens count as %d, window %d", ours, turn.Adjust(ours), report.Window)
		}
		if !report.Doubted {
			t.Error("it is believed")
		}
		if report.Misreport != nil {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times", said)
	}
}

// TestFirstUsageIsLow: the first count for a model may be the wrong one.
func TestFirstUsageIsLow(t *testing.T) {
	for _, share := range []int{2, 3, 4, 6} { // eighths
		r := newRig(t, condense.Noop{})
		r.step(41, func(ours int) session.Usage { return session.Usage{Input: ours * share / 8} })
		if turn := r.begin(says(43), engine.WishNone); turn.Adjust(1000) < 900 {
			t.Errorf("after a report of %d eighths a thousand tokens count as %d", share, turn.Adjust(1000))
		}
	}
}

// TestSilentTruncation: if a server silently cuts prompts, the length it cuts to is learnt as its window.
func TestSilentTruncation(t *testing.T) {
	const window = 2048
	for _, first := range []int{5, 61} { // the history fits at first, or never does
		r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}})
		r.window, r.tenant.Anonymous = 128_000, true
		learnt := 0
		for n := first; n < first+60 && learnt == 0; n += 2 {
			turn, report := r.step(n, upTo(window))
			learnt = report.Window
			if ours := turn.Sent().Tokens; turn.Adjust(ours) < ours*9/10 {
				t.Errorf("%d tokens count as %d", ours, turn.Adjust(ours))
			}
			if learnt > 0 && (report.Misreport == nil || !report.Misreport.Cut) {
				t.Error("nothing is said")
			}
		}
		if learnt > window || learnt < window-100 {
			t.Fatalf("a window of %d is learnt as %d", window, learnt)
		}
		if next, _ := r.step(first+62, upTo(window)); next.Sent().Tokens > window {
			t.Errorf("%d tokens are sent to a window of %d", next.Sent().Tokens, window)
		}
		r.client = "another"
		if next, _ := r.step(first+62, exactly); next.Sent() != next.Turn().Before() {
			t.Error("another client is held to what this one met")
		}
	}
}

// TestUsageIsOfOneSource: usage reported to one client calibrates no other client's counts, nor those for another upstream.
func TestUsageIsOfOneSource(t *testing.T) {
	r := newRig(t, condense.Noop{})
	r.client, r.upstream = "alice", "http://one"
	r.step(21, func(ours int) session.Usage { return session.Usage{Input: 2 * ours} })
	for _, c := range []struct {
		client, upstream string
		want             int
	}{{"alice", "http://one", 2000}, {"bob", "http://one", 1000}, {"alice", "http://two", 1000}} {
		r.client, r.upstream = c.client, c.upstream
		if got := r.begin(says(3), engine.WishNone).Adjust(1000); got != c.want {
			t.Errorf("%s at %s: %d", c.client, c.upstream, got)
		}
	}
}

// TestWindowIsJudgedByTheLargerCount: a low ratio does not admit a history that is too long by our own count.
func TestWindowIsJudgedByTheLargerCount(t *testing.T) {
	r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}})
	r.window = 3000
	for range 40 { // separate requests, each of which upstream counts too low
		r.step(21, func(ours int) session.Usage { return session.Usage{Input: ours * 6 / 10} })
	}
	turn := r.begin(says(41), engine.WishNone)
	if turn.Condense(t.Context()); turn.Sent().Tokens > 3000 || turn.Adjust(1000) > 700 {
		t.Errorf("%d tokens, of which a thousand count as %d, pass into a window of 3000", turn.Sent().Tokens, turn.Adjust(1000))
	}
}

// TestWindowOfAnError: the window in an error is learnt if acting on it helped, and if nothing contradicts it.
func TestWindowOfAnError(t *testing.T) {
	f := func(what string, n, configured int, taken bool, over overflow.Overflow, want int) {
		t.Helper()
		r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}})
		r.window, r.configured = 128_000, configured > 0
		turn := r.begin(says(n), engine.WishNone)
		r.logged(turn)
		turn.overflow(t.Context(), over)
		if got := turn.settle(t.Context(), taken).Window; got != want {
			t.Errorf("%s: learnt %d, want %d", what, got, want)
		}
	}
	f("it helped", 41, 0, true, overflow.Overflow{Limit: 2000}, 2000)
	f("it did not help", 41, 0, false, overflow.Overflow{Limit: 2000}, 0)
	f("a tiny request", 3, 0, true, overflow.Overflow{Limit: 8000}, 0)
	f("a tiny window", 41, 0, true, overflow.Overflow{Limit: 50}, 0)
	f("a configured window", 41, 128_000, true, overflow.Overflow{Limit: 2000}, 0)
}

// TestOnlyCountsThatStoppedGrowingAreTakenForAWindow: only a count that has stopped growing is taken for a window. Tokens that upstream never counts are not cut off.
func TestOnlyCountsThatStoppedGrowingAreTakenForAWindow(t *testing.T) {
	reasoning := func(percent int) func(i, ours int) int {
		return func(i, ours int) int { return 3000 + (ours-3000)*(100-percent)/100 }
	}
	for name, c := range map[string]struct {
		first, step int // of our counts
		theirs      func(i, ours int) int
		want        int
	}{
		"55% reasoning":         {3000, 1500, reasoning(55), 0},
		"60% reasoning":         {3000, 500, reasoning(60), 0},
		"70% reasoning":         {3000, 1500, reasoning(70), 0},
		"70% in small steps":    {28_500, 150, reasoning(70), 0},
		"95% reasoning":         {3000, 500, reasoning(95), 0},
		"hardly anything":       {5000, 299, func(_, ours int) int { return 650 + (ours-5000)/30 }, 0},
		"a cached head":         {40_000, 700, func(_, ours int) int { return ours - 30_000 }, 0},
		"all but what is new":   {3000, 500, func(int, int) int { return 700 }, 0},
		"reasoning for a while": {3000, 1500, func(i, ours int) int { return ours - ours*(i/8)/10 }, 0},
		"stripped later": {3000, 1500, func(i, ours int) int { // 95% is reasoning, which stays until the user speaks
			if i < 16 {
				return ours
			}
			return ours*7/10 + 75*(i-16) - 1050*(i-16)
		}, 0},
		"cut":                  {3000, 500, func(_, ours int) int { return min(ours, 16_000) }, 16_000},
		"cut from the first":   {30_000, 500, func(int, int) int { return 4096 }, 4096},
		"cut in small steps":   {30_000, 60, func(int, int) int { return 4096 }, 4096},
		"cut at messages":      {30_000, 700, func(i, _ int) int { return 4096 - []int{300, 20, 170, 96}[i%4] }, 4076},
		"cut and reasoning":    {3000, 1500, func(i, ours int) int { return min(reasoning(60)(i, ours), 16_000) }, 16_000},
		"cut, and then larger": {3000, 1500, func(i, _ int) int { return 8000 + 8000*min(i/40, 1) }, 8000},
	} {
		r := newRig(t, condense.Noop{})
		learnt := 0
		for i := range 60 {
			turn := r.begin(says(2*i+1), engine.WishNone)
			r.logged(turn)
			ours := c.first + i*c.step
			if got := turn.Used(ours, session.Usage{Input: c.theirs(i, ours)}).Window; learnt == 0 {
				learnt = got
			}
		}
		if learnt != c.want {
			t.Errorf("%s: a window of %d is learnt, want %d", name, learnt, c.want)
		}
	}
}
