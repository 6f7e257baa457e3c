package engine

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestNotHeldForNothing: a prompt that would never be touched, because its cache outlives the limit or no touch could pay, takes no room, and its
// credential is not kept.
func TestNotHeldForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		life  time.Duration
		worth float64
		held  int
	}{
		"worth it":           {time.Hour, 9, 1},
		"cached for a day":   {24 * time.Hour, 9, 0},
		"reads at half cost": {time.Hour, .9, 0},
	} {
		e := &Engine{o: Options{Now: time.Now}}
		e.warm = newWarmer(e)
		now := &Settings{}
		e.settings.Store(now)
		e.warm.hold(&heldPrompt{
			tenant: &Tenant{}, thread: session.Thread{ID: "t"}, read: time.Now(), life: c.life, worth: c.worth,
			request: condense.Request{Body: make([]byte, 100)},
		}, now)
		if len(e.warm.held) != c.held || e.warm.bytes != 100*c.held {
			t.Errorf("%s: %d are held, %d bytes", name, len(e.warm.held), e.warm.bytes)
		}
		e.warm.close()
	}
}
