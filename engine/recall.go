package engine

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// RefusalKept is how long what upstream refused of a thread is not tried again.
const RefusalKept = 10 * time.Minute

// refusal is one of a thread's condensed history, which upstream then took as it came.
type refusal struct {
	at   time.Time
	loop int // where the open tool loop began that needed its reasoning: the refusal may be about that alone; 0: there was none
}

// remember keeps how upstream took the request, for the thread's next one.
func (t *Turn) remember() {
	m := t.engine.memory
	switch {
	case t.relief.refused:
		m.refused.Add(t.conversation(), refusal{t.engine.o.Now(), t.input(condense.Need{}).Loop()})
	case t.changed():
		m.refused.Remove(t.conversation())
	}
	if t.relief.bared > 0 {
		m.lost.Add(t.place.Thread.ID, t.relief.bared)
	}
}

// conversation names the thread's requests to the model.
func (t *Turn) conversation() source { return t.sourceOf("thread " + string(t.place.Thread.ID)) }

// refused reports whether upstream refused the thread's condensed history a short while ago, and the history fits as it came.
func (t *Turn) refused() bool {
	r, known := t.engine.memory.refused.Get(t.conversation())
	if !known || t.in.Wish == WishNow || t.engine.o.Now().Sub(r.at) >= RefusalKept {
		return false
	}
	whole := t.inputOf(condense.Need{}, t.counted().fixed, t.Before().Tokens)
	return (r.loop == 0 || r.loop == whole.Loop()) && !overWindow(whole)
}

// recall has the body go at once as upstream took the thread's last one: as it came, without the sealed reasoning that it refused.
func (t *Turn) recall() {
	aside := t.shown
	t.show(t.project(nil))
	t.relief.recalled, t.relief.asItCame = &aside, true
}

// settled reports whether nothing is changed of the request any more, whatever upstream says of its length.
func (t *Turn) settled() bool {
	return t.in.Wish == WishOff || t.in.Tenant.Observe || t.relief.asItCame && t.relief.recalled == nil
}

// takeUp shows the view that was put aside, because the request is too long without.
func (t *Turn) takeUp() {
	if aside := t.relief.recalled; aside != nil {
		t.show(*aside)
		t.relief.recalled, t.relief.asItCame = nil, false
	}
}
