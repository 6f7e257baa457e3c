package retention

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// anyRun draws a run of user turns, answers and exchanges of different sizes.
func anyRun(t *rapid.T) replay.Run {
	r := recorded([]json.RawMessage{text("system", "You are an agent."), text("user", "Begin with main.go")})
	for i := range rapid.IntRange(3, 20).Draw(t, "steps") {
		words := strings.Repeat(" word", rapid.IntRange(0, 30).Draw(t, "words"))
		named := fmt.Sprintf("src/file%d.go", rapid.IntRange(0, 6).Draw(t, "file"))
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			r.Messages = append(r.Messages, text("user", "and "+named+words))
		case 1:
			r.Messages = append(r.Messages, text("assistant", "saw "+named+words))
		default:
			r.Messages = append(r.Messages, exchange(fmt.Sprintf("call_%d", i), "cat "+named, named+words)...)
		}
	}
	r.Final = text("assistant", "src/file1.go src/file2.go src/file3.go")
	return r
}

func TestBaselinesMeetTheBudget(t *testing.T) {
	baselines := map[string]func(*moment, int) shown{"tail": tailOnly, "head+tail": headTail, "random": random, "oracle": oracle}
	property.Check(t, func(t *rapid.T) {
		r, err := newRun(anyRun(t), wordCounter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.moments(10, 1, 4, (*moment).refers) {
			budget := m.floor() + rapid.IntRange(0, m.total).Draw(t, "budget")
			for name, view := range baselines {
				s := view(m, budget)
				if s.tokens > budget {
					t.Errorf("%s: %d tokens, budget %d", name, s.tokens, budget)
				}
				checkSelection(t, m, name, s)
				if again := view(m, budget); fmt.Sprint(again.whole) != fmt.Sprint(s.whole) {
					t.Errorf("%s: another choice the second time", name)
				}
			}
		}
	})
}

// checkSelection: the count is right, what is protected stays, and units are whole.
func checkSelection(t *rapid.T, m *moment, name string, s shown) {
	tokens := 0
	for i := range m.at {
		if s.whole[i] {
			tokens += m.run.tokens[i]
		}
		if m.protected[i] && !s.whole[i] {
			t.Errorf("%s: message %d is protected and gone", name, i)
		}
	}
	if tokens != s.tokens {
		t.Errorf("%s: %d tokens, says %d", name, tokens, s.tokens)
	}
	for _, u := range m.units {
		for i := u.From + 1; i < u.To; i++ {
			if s.whole[i] != s.whole[u.From] {
				t.Errorf("%s: unit %v is split", name, u)
			}
		}
	}
}

// TestOracleKnows holds the oracle to a case with one right answer: one old exchange has all that is used.
func TestOracleKnows(t *testing.T) {
	m := handMoment(t)
	budget := m.floor() + m.run.tokens[2] + m.run.tokens[3]
	if got := m.score(oracle(m, budget), budget); got.Recalled != 2 {
		t.Errorf("oracle recalls %d of 2", got.Recalled)
	}
	if got := m.score(headTail(m, budget), budget); got.Recalled != 1 {
		t.Errorf("head and tail recall %d, want the newer one only", got.Recalled)
	}
}
