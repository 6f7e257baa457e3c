package condense_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestEconomics checks that a condensation is due once the rent has paid for it and for its risk, which no summary adds to, and at once if
// nothing of the request is cached.
func TestEconomics(t *testing.T) {
	e := condense.Economics{Read: 0.1, Write: 1.25, Target: 24_000}
	cheap := e
	cheap.In, cheap.Out = 1, 5
	reuse := cheap
	reuse.Answer, reuse.Cached = 5, 50_000
	partly := reuse
	partly.Cached = 10_000
	for name, c := range map[string]struct {
		e    condense.Economics
		m    condense.Moment
		rent float64
		due  bool
	}{
		"small":                    {e, condense.Moment{Head: 10_000, Before: 25_000, Total: 26_000, Cold: true}, 1e9, false},
		"not paid for":             {e, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000}, 1_000, false},
		"paid for":                 {e, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000}, 26_000, true},
		"a large result comes":     {e, condense.Moment{Head: 10_000, Before: 30_000, Total: 60_000}, 0, true},
		"cold":                     {e, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000, Cold: true}, 0, true},
		"a dear summary":           {cheap, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000}, 57_000, false},
		"a dear summary, paid for": {cheap, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000}, 57_200, true},
		"behind the request":       {reuse, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000}, 50_000, true},
		"partly in the cache":      {partly, condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000}, 50_000, false},
	} {
		if got := c.e.Due(c.rent, c.m, 1); got != c.due {
			t.Errorf("%s: due %t, it costs %.0f more", name, got, c.e.Extra(c.m))
		}
	}
}

// TestThresholdsByPrice checks both sides of each threshold. At 30,000 tokens the next request pays 90,000 for a condensation.
func TestThresholdsByPrice(t *testing.T) {
	e := condense.Economics{Read: 1, Write: 11, Target: 20_000}
	moment := func(before, total int) condense.Moment {
		return condense.Moment{Head: 10_000, Before: before, Total: total}
	}
	for name, c := range map[string]struct {
		m     condense.Moment
		share float64
		rent  float64 // that is just enough
	}{
		"twice its price":          {moment(26_000, 30_000), 1, 100_000},
		"a third of that":          {moment(26_000, 30_000), .3, 30_000},
		"three requests before":    {moment(26_000, 30_000), .8, 100_000 - 3*10_000},
		"half of that of the next": {moment(25_500, 30_000), 1, 90_000},
		"less than half of it":     {moment(25_499, 30_000), 1, 89_980 - 2*10_000}, // the rent of two requests comes
		"a third of it next":       {moment(24_000, 30_000), 1, 60_000 - 2*10_000},
	} {
		if e.Due(c.rent-1, c.m, c.share) || !e.Due(c.rent, c.m, c.share) {
			t.Errorf("%s: with %.0f due %t, with one less %t", name, c.rent, e.Due(c.rent, c.m, c.share), e.Due(c.rent-1, c.m, c.share))
		}
	}
	for total, due := range map[int]bool{25_000: false, 25_001: true} { // a quarter above the target
		if got := e.Due(1e9, moment(total-1000, total), 1); got != due {
			t.Errorf("of %d tokens due %t", total, got)
		}
	}
}

// TestPromptReuseNeedsAWarmCache checks that a summary behind a request that is not cached any more costs what another would.
// TestPriceTierIsNotExceeded: above the edge of a tier a condensation is due at once, if it gets below it.
func TestPriceTierIsNotExceeded(t *testing.T) {
	e := condense.Economics{Read: 0.1, Write: 1, Edge: 200_000, Target: 100_000}
	m := condense.Moment{Head: 5000, Before: 199_000, Total: 200_001}
	if e.Due(0, m, 0.8) || !e.Due(0, m, 1) {
		t.Error("nothing is due above the edge")
	}
	m.Total = 200_000
	if e.Due(0, m, 1) {
		t.Error("due at the edge")
	}
	e.Target, m.Total = 201_000, 260_000
	if e.Due(0, m, 1) {
		t.Error("due without getting below the edge")
	}
}

func TestPromptReuseNeedsAWarmCache(t *testing.T) {
	e := condense.Economics{Read: 0.1, Write: 1, Answer: 5, In: 1, Out: 5, Target: 24_000}
	reuse := e
	reuse.Cached = 1 << 20
	for cold, less := range map[bool]bool{true: false, false: true} {
		m := condense.Moment{Head: 10_000, Before: 50_000, Total: 51_000, Cold: cold}
		if got := reuse.Condensed(m) < e.Condensed(m); got != less {
			t.Errorf("cold %t: %.0f, and %.0f otherwise", cold, reuse.Condensed(m), e.Condensed(m))
		}
	}
}

// TestEconomicsOfAView checks that the rent is that of the requests since the last condensation, whichever replica saw them.
func TestEconomicsOfAView(t *testing.T) {
	s := condense.Settings{Economics: &condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000, Life: time.Hour}, KeepFirst: 1}
	first := 0
	for n := 3; first == 0 && n < 400; n += 2 {
		if s.Due(said(n, 0)).Need.Reason == "economics" {
			first = n
		}
	}
	if first < 20 || first > 120 {
		t.Fatalf("due at %d messages", first)
	}
	if due := s.Due(said(first-2, 2*time.Hour)); due.Need.Reason != "economics" || due.Need.Hard {
		t.Errorf("cold: %+v", due)
	}
	s.Economics.Read = 0
	if due := s.Due(said(first, 0)); due.Need.Reason != "" {
		t.Errorf("without prices: %+v", due)
	}
}

// TestPriceLeavesRoomForMemory checks that a condensation by price leaves what must stay, and room that grows with the square root of the
// history: a history of four times the length is worth twice the memory.
func TestPriceLeavesRoomForMemory(t *testing.T) {
	for name, c := range map[string]struct{ head, messages, want int }{ // messages of 100 tokens
		"what must stay, and some memory":   {1, 80, 300 + 2190},
		"behind a larger head":              {12, 80, 1400 + 2190},
		"of a longer history":               {1, 800, 300 + 6928},
		"of one that is four times as long": {1, 3200, 300 + 13856},
	} {
		s := condense.Settings{Economics: &condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000, Life: time.Hour}, KeepFirst: c.head}
		if due := s.Due(said(c.messages, 2*time.Hour)); due.Need.Reason != session.ReasonEconomics || due.Target.Tokens != c.want {
			t.Errorf("%s: due by %q, target %d, want %d", name, due.Need.Reason, due.Target.Tokens, c.want)
		}
	}
}

// TestHiddenMessagesCountForMemory checks that the room does not shrink once most of the history is hidden.
func TestHiddenMessagesCountForMemory(t *testing.T) {
	s := condense.Settings{Economics: &condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000, Life: time.Hour}, KeepFirst: 1}
	in := said(120, 2*time.Hour)
	before := s.Due(in).Target.Tokens
	in.View.Applied = []session.Condensation{{ForgottenTokens: 68_000}}
	if got := s.Due(in).Target.Tokens; got != before+4245 {
		t.Errorf("target %d, %d if nothing is hidden", got, before)
	}
}

// TestRecordIsNoPartOfTheHead checks that a record that stands where the head would go on takes no room beside what must stay. Otherwise each
// condensation would leave room for the record before it, and records would grow without end.
func TestRecordIsNoPartOfTheHead(t *testing.T) {
	s := condense.Settings{Economics: &condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000, Life: time.Hour}, KeepFirst: 2}
	in := said(120, 2*time.Hour)
	in.View.Items[1] = session.Item{Kind: session.User, Index: -1}
	in.Measure = func(items []session.Item) []int {
		tokens := make([]int, len(items))
		for i := range items {
			if tokens[i] = 100; items[i].Index < 0 {
				tokens[i] = 9000
			}
		}
		return tokens
	}
	in.Total = 119*100 + 9000
	if got, most := s.Due(in).Target.Tokens, condense.Memory(in.Total)+4*100; got == 0 || got > most {
		t.Errorf("target %d, at most %d remain beside what must stay", got, most)
	}
}

// TestLimitsLeaveHalfOfWhatCanBeCondensed checks that system prompt and tools do not count for the target of a limit.
func TestLimitsLeaveHalfOfWhatCanBeCondensed(t *testing.T) {
	for fixed, want := range map[int]int{0: 15_000, 12_000: 9000, 29_000: 500, 30_000: 0, 40_000: 0} {
		in := said(400, 0)
		in.Fixed = fixed
		if due := (condense.Settings{MaxTokens: 30_000, KeepFirst: 1}).Due(in); due.Need.Reason != session.ReasonTokens || due.Target.Tokens != want {
			t.Errorf("beside %d tokens: due by %q, target %d, want %d", fixed, due.Need.Reason, due.Target.Tokens, want)
		}
	}
	messages := []session.Message{{Kind: session.System}, {Kind: session.User}, {Kind: session.Agent}, {Kind: session.User}}
	view := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	in := condense.Input{View: &view, Total: 40_000, Measure: func([]session.Item) []int { return []int{12_000, 10_000, 8_000, 10_000} }}
	if due := (condense.Settings{MaxTokens: 30_000}).Due(in); due.Target.Tokens != 12_000+9_000 {
		t.Errorf("with a system prompt of 12,000 tokens the target is %d", due.Target.Tokens)
	}
}

// TestKeeps checks that a client that asks for an hour has a warm cache after ten minutes, if the provider supports it.
func TestKeeps(t *testing.T) {
	s := condense.Settings{Economics: &condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000, Life: 5 * time.Minute}, KeepFirst: 1}
	for name, c := range map[string]struct {
		idle, keeps time.Duration
		asked, due  bool
	}{
		"cold after its life":        {10 * time.Minute, 0, true, true},
		"warm, as asked":             {10 * time.Minute, time.Hour, true, false},
		"cold after an hour as well": {time.Hour, time.Hour, true, true},
		"a provider that ignores it": {10 * time.Minute, time.Hour, false, true},
		"shorter than usual":         {10 * time.Minute, 5 * time.Minute, true, true},
	} {
		s.Economics.Asked = c.asked
		in := said(40, c.idle)
		in.Thread.CacheFor = c.keeps
		if due := s.Due(in).Need.Reason == session.ReasonEconomics; due != c.due {
			t.Errorf("%s: due %v", name, due)
		}
	}
}

// said returns a conversation of that many messages of 100 tokens, the last of which is by the user.
func said(n int, idle time.Duration) condense.Input {
	messages := make([]session.Message, n)
	for i := range messages {
		messages[i] = session.Message{Raw: []byte("x"), Kind: session.User}
		if i%2 == 1 {
			messages[i].Kind = session.Agent
		}
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	return condense.Input{
		View: &v, Total: 100 * n, Codec: condensetest.Codec{}, Thread: condense.Thread{Idle: idle},
		Measure: func(items []session.Item) []int { return slices.Repeat([]int{100}, len(items)) },
	}
}
