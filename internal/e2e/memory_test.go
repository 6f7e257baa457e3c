package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// TestConformanceKit has the compaction conformance kit of PyPI judge what is left of its conversations after five condensations of the
// default type, whose summariser is an extractive stand-in. Facts are all kept, and so are near duplicates. Of a value that was updated the
// newest is there and comes last; the older one is there too, since a user's own words stay. What has no name or number in it is lost with
// the oldest words of a user who speaks more than their share: that is told, and not held.
func TestConformanceKit(t *testing.T) {
	t.Parallel()
	script := pythonClient(t)
	s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: r.Text()}
	}})
	var kept struct {
		Survival                            map[string]float64
		Updates, Latest, After, Pairs, Both int
	}
	out := s.client(t, script("memory"))
	if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &kept); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("the smallest share kept of each type: %v", kept.Survival)
	if kept.Survival["fact"] < 1 || len(kept.Survival) != 5 || kept.Updates != 64 || kept.Latest != kept.Updates || kept.After != kept.Updates || kept.Pairs != 24 || kept.Both != kept.Pairs {
		t.Errorf("%+v", kept)
	}
}
