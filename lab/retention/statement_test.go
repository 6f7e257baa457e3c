package retention

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

const (
	plan    = "We should cache the tenant lookups inside the gateway before the audit."
	finding = "The scheduler drops leases whenever its heartbeat arrives late."
)

// deciding is a run in which the agent says two things, works on, and comes back to one of them.
func deciding(last string) replay.Run {
	all := recorded(
		[]json.RawMessage{text("system", "You are an agent."), text("user", "Make it faster"), text("assistant", plan+" "+finding+"\n```\n"+
			"migrate heartbeat leases scheduler gateway tenant lookups\n```")},
		exchange("call_a", "ls", "nothing to see"),
		[]json.RawMessage{text("user", "go on"), text("assistant", "I have looked at the files and go on now")},
		exchange("call_b", "ls", "still nothing to see"),
	)
	all.Messages = append(all.Messages, text("assistant", last))
	return all
}

// TestStatementsThatAreReliedOn: an action relies on the earlier sentence with which it shares most rare words, not on fenced text or on common words.
func TestStatementsThatAreReliedOn(t *testing.T) {
	for name, c := range map[string]struct{ last, want string }{
		"the plan":              {"As decided, tenant lookups are now cached inside the gateway.", plan},
		"the finding":           {"So late heartbeat handling in the scheduler loses leases again.", finding},
		"too little of it":      {"The gateway has a tenant file that I have not opened yet.", ""},
		"something new":         {"Compression of the payloads would be worth an experiment next week.", ""},
		"what the user asked":   {"Now I make it faster, faster than it was before, much faster.", ""},
		"too short a statement": {"Cache tenant lookups, gateway.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := opened(t, deciding(c.last))
			m := r.moment(len(r.messages)-1, 100)
			if c.want == "" {
				if len(m.relied) > 0 {
					t.Errorf("relies on %v", m.relied)
				}
				return
			}
			if len(m.relied) != 1 || !survived(m.relied[0].words, words(c.want)) || m.relied[0].message != 2 {
				t.Errorf("relies on %v, want %q", m.relied, c.want)
			}
		})
	}
}

// TestStatementsAreSeen: a statement is to be seen in its whole message, or in a line with half of its words.
func TestStatementsAreSeen(t *testing.T) {
	r := opened(t, deciding("As decided, tenant lookups are now cached inside the gateway."))
	m := r.moment(len(r.messages)-1, 100)
	for name, c := range map[string]struct {
		whole int
		text  string
		want  int
	}{
		"whole":              {whole: 2, want: 1},
		"another message":    {whole: 3},
		"its line":           {text: "### assistant\n" + plan, want: 1},
		"half of it":         {text: "cache the tenant lookups inside the gateway", want: 1},
		"a few of its words": {text: "cache the tenant"},
		"on two lines":       {text: "cache the tenant lookups\ninside the gateway before"},
	} {
		s := shown{whole: make([]bool, m.at), texts: []string{c.text}}
		if c.whole > 0 {
			s.whole[c.whole] = true
		}
		if got := m.score(s, 100); got.Relied != 1 || got.Stated != c.want || got.FarRelied != 0 {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}

// TestExcerptsKeepWhatTheAgentSaid guards the decisions score: where there is room for lines, excerpts quote more of the statements that the agent comes
// back to than chance leaves.
func TestExcerptsKeepWhatTheAgentSaid(t *testing.T) {
	letters := "abcdefghijkl"
	topic := func(i int) string {
		return strings.NewReplacer("#", letters[i:i+1]).Replace("lookups#### leases#### election####")
	}
	run := recorded([]json.RawMessage{text("system", "You are an agent."), text("user", "Make it faster")})
	for i := range 4 * len(letters) {
		said := "I look at one more of the files now"
		if i < len(letters) {
			said = "I decided that " + topic(i) + " stay in src/" + letters[i:i+1] + "_part.go for now."
		}
		run.Messages = append(run.Messages, text("assistant", said), text("user", "go on"))
		run.Messages = append(run.Messages, exchange("call_"+strings.Repeat("x", i+1), "cat", strings.Repeat("the output goes on and on for a while\n", 20))...)
	}
	for i := range letters {
		run.Messages = append(run.Messages, text("assistant", "As decided, "+topic(i)+" stay where they were before."), text("user", "go on"))
	}
	r, err := Measure(t.Context(), []replay.Run{run}, SaidStrategies(), Options{
		Shares: []float64{0.1}, Moments: 8, Minimum: 300, Counter: wordCounter{}, Statements: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	excerpts, chance := r.total(r.index("excerpts"), 0, r.all()), r.total(r.index("random"), 0, r.all())
	if excerpts.Relied == 0 || excerpts.Stated <= chance.Stated {
		t.Errorf("of %d statements %d, by chance %d", excerpts.Relied, excerpts.Stated, chance.Stated)
	}
	var table bytes.Buffer
	if r.Said(&table); !strings.Contains(table.String(), "| `excerpts` |") || !strings.Contains(table.String(), "| DS, 10% |") {
		t.Error(table.String())
	}
}
