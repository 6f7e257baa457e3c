package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// fickle is a summariser that fails at the first summary of some members, which it recognises by their names.
type fickle struct {
	troubled sync.Map // members for which it has failed
	written  sync.Map // number of summaries by member
}

var memberName = regexp.MustCompile(`member \d\d`)

func (m *fickle) Summarise(_ context.Context, r condense.Request) (condense.Reply, error) {
	name := memberName.FindString(r.User)
	var n int
	fmt.Sscanf(name, "member %d", &n)
	if _, failed := m.troubled.LoadOrStore(name, true); !failed {
		switch n % 10 {
		case 3:
			return condense.Reply{Finish: "stop"}, nil // empty
		case 7:
			return condense.Reply{}, &condense.CallError{Kind: condense.FailureServer, Status: 503}
		}
	}
	count, _ := m.written.LoadOrStore(name, new(int))
	*count.(*int)++ // no race: the test makes one call at a time for each member
	return condense.Reply{Text: "DISCUSSED: the sea.", Finish: "stop"}, nil
}

func (m *fickle) summaries(name string) int {
	if count, ok := m.written.Load(name); ok {
		return *count.(*int)
	}
	return 0
}

// TestAFailingSummariserLosesNoSummary: conversations take turns on two replicas, with a summariser that fails for some of them and then
// cools down. Condensations are still made as soon as they are due, and each gets one summary in the end.
func TestAFailingSummariserLosesNoSummary(t *testing.T) {
	quick.Skip(t)
	sessions, steps := 40, 40
	if testing.Short() {
		sessions = 15
	}
	summaries := &fickle{}
	first := newRig(t, nil)
	health := summariser.NewHealth(func() time.Time { return first.clock })
	first.tenant.Condenser = condense.NewLLM(condense.LLMSettings{
		Settings:   condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8},
		Summariser: summaries, Model: "cheap", Health: health,
	})
	first.tenant.Never, first.tenant.Ahead = true, true
	replicas := []*rig{first, first.replica()}

	late := 0
	made, provisional := map[string]int{}, map[string]int{} // by member: condensations with and without a summary
	last := map[string][]byte{}                             // the last request forwarded
	for step := range steps {
		first.clock = first.clock.Add(20 * time.Second)
		for n := range sessions {
			name := fmt.Sprintf("member %02d", n)
			asked := &body{bytes: bytes.ReplaceAll(says(2*step+1).bytes, []byte("The sea"), []byte(name+" says that the sea"))}
			r := replicas[(n+step)%2]
			r.clock = first.clock
			turn := r.begin(asked, engine.WishNone)
			report := turn.Condense(t.Context())
			if events := turn.Sent().Events; events > 20 {
				late++
			}
			for _, a := range report.Attempts {
				switch {
				case a.Made == nil:
					t.Errorf("%s, step %d: %v", name, step, a.Err)
				case a.Made.Provisional:
					provisional[name]++
				default:
					made[name]++
				}
			}
			r.logged(turn)
			asked.work.Wait()
			last[name] = forwarded(turn)
		}
	}
	if late > 0 || len(provisional) == 0 {
		t.Errorf("%d requests went without the condensation that was due, excerpts stood in for %d members", late, len(provisional))
	}
	for n := range sessions {
		name := fmt.Sprintf("member %02d", n)
		if !bytes.Contains(last[name], []byte("DISCUSSED")) || bytes.Contains(last[name], []byte("NOT_SUMMARISED")) {
			t.Errorf("%s has no summary", name)
		}
		if written := summaries.summaries(name); written < made[name] || written > made[name]+provisional[name]+1 { // one more may be prepared
			t.Errorf("%s: %d summaries for %d condensations", name, written, made[name])
		}
	}
}
