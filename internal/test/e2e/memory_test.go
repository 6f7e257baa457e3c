package e2e

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// keptValues counts what remains of the updated values in the kit's semantic part, and of its similar pairs.
type keptValues struct {
	Updates, Latest, After, Old, Pairs, Both int
}

// TestConformanceKit uses PyPI's compaction conformance kit to judge what remains of its conversations after five condensations
// each of the default type, with an extractive stand-in as the summariser: every rule, constraint, goal, preference and fact, the
// newest of every updated value, and both of each similar pair. The kit considers an update resolved if the old value is gone.
// That holds if the agent stated the old value. If the user typed it, as in all of the kit's own sessions, it conflicts with the
// rule that a user's own words are kept, so there the newest value comes last.
func TestConformanceKit(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs real clients; lab/retention measures what is kept without them")
	}
	t.Parallel()
	script := pythonClient(t)
	s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: r.Text()}
	}})
	all := map[string]float64{"safety_rule": 1, "hard_constraint": 1, "goal_state": 1, "user_preference": 1, "fact": 1}
	for name, config := range map[string]string{
		"limits of the default": s.configAt(t, embedded(newStore(t)), 240),
		"above 20 events":       s.config(t, embedded(newStore(t))),
	} {
		t.Run(name, func(t *testing.T) {
			var kept struct {
				Survival    map[string]float64
				Corpora     map[string]map[string]int
				Typed, Told keptValues
			}
			out := s.clientOf(t, config, script("memory"))
			if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &kept); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !maps.Equal(kept.Survival, all) {
				t.Errorf("the smallest share kept of each type: %v", kept.Survival)
			}
			for _, corpus := range []string{"seeded", "randomized", "generated"} {
				c := kept.Corpora[corpus]
				if c["rules_asked"] == 0 || c["rules"] != c["rules_asked"] || c["exact_asked"] == 0 || c["exact"] != c["exact_asked"] {
					t.Errorf("%s: %v", corpus, c)
				}
			}
			if want := (keptValues{Updates: 64, Latest: 64, After: 64, Old: 64, Pairs: 24, Both: 24}); kept.Typed != want {
				t.Errorf("of what was typed %+v, want %+v", kept.Typed, want)
			}
			if want := (keptValues{Updates: 64, Latest: 64, After: 64, Pairs: 24, Both: 24}); kept.Told != want {
				t.Errorf("of what the agent told %+v, want %+v", kept.Told, want)
			}
		})
	}
}
