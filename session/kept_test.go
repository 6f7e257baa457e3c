package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestSystemInForce: whole histories replace the system messages of those before; where upstream keeps the history, more are added. What
// stands apart applies to one request.
func TestSystemInForce(t *testing.T) {
	for name, c := range map[string]struct {
		logged [][]int // of each request: Event.After of its system messages; plus 100, or -103 for -1, if upstream kept the history
		want   string
	}{
		"one request":                   {[][]int{{-1, 0, 2}}, "0.-1 | 0.0 0.2"},
		"the next whole history":        {[][]int{{-1, 0, 2}, {-1, 0, 4}}, "1.-1 | 1.0 1.4"},
		"behind a user's message":       {[][]int{{1}, {1, 3}}, " | 1.1 1.3"},
		"upstream keeps the history":    {[][]int{{-1, 0, 0}, {-103, 103}, {-103}, {107, 108}}, "2.-1 | 0.0 0.0 1.3 3.7 3.8"},
		"whole again":                   {[][]int{{0}, {103}, {0, 5}}, " | 2.0 2.5"},
		"only what stands apart, twice": {[][]int{{-1}, {-1}}, "1.-1 | "},
	} {
		var events []session.Event
		for n, afters := range c.logged {
			for _, after := range afters {
				e := session.Event{Kind: session.System, After: after, Time: time.Unix(int64(n), 0)}
				switch {
				case after == -103:
					e.After, e.Chain = -1, session.Hash{1}
				case after >= 100:
					e.After, e.Chain = after-100, session.Hash{1}
				}
				events = append(events, e)
			}
			events = append(events, session.Event{Kind: session.User, Pos: n + 1})
		}
		named := func(events []session.Event) string {
			var names []string
			for _, e := range events {
				names = append(names, fmt.Sprintf("%d.%d", e.Time.Unix(), e.After))
			}
			return strings.Join(names, " ")
		}
		alone, system := session.SystemInForce(events)
		if got := named(alone) + " | " + named(system); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
