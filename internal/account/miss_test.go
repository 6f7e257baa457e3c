package account_test

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestCausesOfCacheMisses injects each cause alone, in each protocol.
func TestCausesOfCacheMisses(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	causes := map[account.Miss]func(before, now *account.Sent) (none bool){
		account.MissModel:    func(_, now *account.Sent) bool { now.Model = "another"; return false },
		account.MissEndpoint: func(_, now *account.Sent) bool { now.Prompt.Endpoint++; return false },
		account.MissTools:    func(_, now *account.Sent) bool { now.Prompt.Tools++; return false },
		account.MissSystem:   func(_, now *account.Sent) bool { now.Prompt.System++; return false },
		account.MissCondensed: func(_, now *account.Sent) bool {
			now.Record = session.CondensationID{Thread: "t", Seq: 9}
			return false
		},
		account.MissWhole:      func(_, now *account.Sent) bool { now.Record = session.CondensationID{}; return false },
		account.MissConcurrent: func(before, now *account.Sent) bool { now.Begun = before.Ended.Add(-time.Second); return false },
		account.MissExpired: func(before, now *account.Sent) bool {
			now.Begun = before.Ended.Add(now.Life + time.Second)
			return false
		},
		account.MissShort:      func(_, now *account.Sent) bool { now.Usage.Input = 900; return false },
		account.MissUnreported: func(_, now *account.Sent) bool { now.Usage.Reported = false; return false },
		account.MissFirst:      func(_, _ *account.Sent) bool { return true },
		account.MissProvider:   func(_, _ *account.Sent) bool { return false },
	}
	for _, split := range []session.Cause{
		session.CauseUser, session.CauseAnswer, session.CauseResult, session.CauseLeftOut, session.CauseInserted, session.CauseSide, session.CauseUnknown,
	} {
		causes[account.Miss(split)] = func(_, now *account.Sent) bool { now.Split = split; return false }
	}
	for _, protocol := range []string{"chat", "messages", "responses"} {
		for want, inject := range causes {
			before := account.Sent{
				Begun: at, Ended: at.Add(10 * time.Second), Protocol: protocol, Model: "m", Prompt: account.Prompt{Endpoint: 1, Tools: 2, System: 3},
				Record: session.CondensationID{Thread: "t", Seq: 4}, Life: 5 * time.Minute,
				Usage: account.Usage{Reported: true, Usage: session.Usage{Input: 50_000, Cached: 40_000}},
			}
			if protocol == "messages" {
				before.Usage.Written = 9_900
			}
			now := before
			now.Begun, now.Ended = at.Add(20*time.Second), at.Add(30*time.Second)
			now.Usage.Input, now.Usage.Cached = 51_000, 49_900
			if got := account.MissOf(&before, &now); got != "" {
				t.Errorf("%s: without a miss: %s", protocol, got)
			}
			now.Usage.Cached = 3_000
			if protocol == "messages" { // marked at the end, as before
				now.Usage.Written = now.Usage.Input - now.Usage.Cached
			}
			last := &before
			if inject(&before, &now) {
				last = nil
			}
			if got := account.MissOf(last, &now); got != want {
				t.Errorf("%s: %q is taken for %q", protocol, want, got)
			}
			s := account.Step{Miss: want}
			if back, err := account.Unpack(account.Pack(&s)); err != nil || back.Miss != want || len(account.Pack(&s)) != len(account.Pack(&account.Step{})) {
				t.Errorf("%q takes more than a byte in a record, or is not read back: %q, %v", want, back.Miss, err)
			}
		}
		before := account.Sent{Protocol: "messages", Usage: account.Usage{Reported: true, Usage: session.Usage{Input: 50_000}}}
		now := before
		if got := account.MissOf(&before, &now); protocol == "messages" && got != account.MissUnmarked {
			t.Errorf("nothing is marked, and the cause is %q", got)
		}
	}
}
