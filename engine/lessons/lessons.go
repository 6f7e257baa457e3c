package lessons

import "time"

// Kind is something that upstreams do or do not do.
type Kind int

// The kinds.
const (
	AlternatesOnly   Kind = iota // it refuses roles that do not alternate
	RefusesTools                 // it refuses hidden tools
	FailsUnchanged               // it failed on an unchanged request after a changed one
	RefusesSummaries             // a conversation was too long for it in spite of summaries that were paid for
	RefusesUnbinding             // it refuses to be asked to drop reasoning that is bound to another history
	ChecksPlace                  // it refuses reasoning behind another history, although its model's signatures are not known to prove the place
	Compacts                     // it compacts histories into items of its own
	Manages                      // it manages histories as their requests ask
	kinds
)

// How long lessons hold.
const (
	confirmed   = 6 * time.Hour    // for all clients of a tenant, unless the table says otherwise
	unconfirmed = 10 * time.Minute // a window, for the client that met it
	abilityHeld = time.Hour

	// RefusalHeld is how long a conversation is forwarded unchanged after upstream has refused it condensed, and no summary is paid for after
	// upstream has refused that for its length.
	RefusalHeld = 10 * time.Minute
	// FailureHeld is how long unchanged bodies are not tried for a client after upstream failed on both forms of a request.
	FailureHeld = time.Minute
)

// terms returns how long lessons of each kind hold: for the client that was shown it, and for all once a second client has confirmed it.
func terms() [kinds]Terms[bool] {
	return [kinds]Terms[bool]{
		AlternatesOnly:   {Own: confirmed, Shared: confirmed},
		RefusesTools:     {Own: confirmed, Shared: confirmed},
		FailsUnchanged:   {Own: FailureHeld, Shared: confirmed},
		RefusesSummaries: {Own: RefusalHeld, Shared: confirmed},
		RefusesUnbinding: {Own: confirmed, Shared: confirmed},
		ChecksPlace:      {Own: confirmed, Shared: confirmed},
		Compacts:         {Own: abilityHeld, Shared: abilityHeld},
		Manages:          {Own: abilityHeld, Shared: abilityHeld},
	}
}

// kept is how many clients, conversations and upstreams are remembered of each kind. Clients choose model names and begin conversations, so
// that the number must be bounded. What is forgotten is learnt again.
const kept = 4096

// Lessons is what upstreams have shown: the one memory from which a request's first form follows. It may be used concurrently.
type Lessons struct {
	now     func() time.Time
	windows *Book[int] // in tokens
	sizes   *Book[int] // in bytes
	shown   [kinds]*Book[bool]
	refused *Book[int] // see LearnRefusal
}

// New returns an empty memory.
func New(now func() time.Time) *Lessons {
	l := &Lessons{
		now:     now,
		windows: NewBook(kept, Terms[int]{Own: unconfirmed, Shared: confirmed, Same: sameWindow}),
		sizes:   NewBook(kept, Terms[int]{Own: confirmed, Shared: confirmed, Same: sameWindow}),
		refused: NewBook(kept, Terms[int]{Own: RefusalHeld, Same: Equal[int]}),
	}
	for kind, of := range terms() {
		of.Same = Equal[bool]
		l.shown[kind] = NewBook(kept, of)
	}
	return l
}

// Clear forgets everything, as after upstreams have been reconfigured.
func (l *Lessons) Clear() {
	l.windows.Clear()
	l.sizes.Clear()
	l.refused.Clear()
	for _, book := range l.shown {
		book.Clear()
	}
}

// Learn records whether upstream has just shown a kind of behaviour.
func (l *Lessons) Learn(kind Kind, p Place, shown bool) { l.shown[kind].Learn(p, shown, l.now()) }

// Known returns whether upstream has shown a kind of behaviour, and whether anything is known about that.
func (l *Lessons) Known(kind Kind, p Place) (shown, known bool) {
	return l.shown[kind].Known(p, l.now())
}

// Has reports whether upstream is known to show a kind of behaviour.
func (l *Lessons) Has(kind Kind, p Place) bool {
	shown, _ := l.Known(kind, p)
	return shown
}

// Forget forgets what the client itself was shown of a kind.
func (l *Lessons) Forget(kind Kind, p Place) { l.shown[kind].Forget(p) }

// Empty reports whether nothing is known of a kind about any upstream.
func (l *Lessons) Empty(kind Kind) bool { return l.shown[kind].Empty() }

const (
	minWindow   = 512 // tokens; no model has a smaller one
	windowShare = 10  // windows that differ by less than a tenth are the same
)

// sameWindow is Terms.Same for windows: the smaller of two that are about the same.
func sameWindow(a, b int) (int, bool) { return min(a, b), max(a, b)-min(a, b) <= max(a, b)/windowShare }

// LearnWindow records a model's window, in tokens, that an error or cut prompts have shown. It reports whether the window can be true.
func (l *Lessons) LearnWindow(p Place, tokens int) bool {
	if tokens < minWindow {
		return false
	}
	l.windows.Learn(p, tokens, l.now())
	return true
}

// Window returns the smallest of a model's known window and those learnt, in tokens. 0: none is known.
func (l *Lessons) Window(p Place, known int) int {
	smallest := func(window int, valid bool) {
		if valid && (known == 0 || window < known) {
			known = window
		}
	}
	smallest(l.windows.Own(p, l.now()))
	smallest(l.windows.Shared(p, l.now()))
	return known
}

// LearnSize records the size of a request body, in bytes, that was too large for upstream.
func (l *Lessons) LearnSize(p Place, bytes int) {
	if smaller, known := l.Size(p); known && smaller < bytes {
		bytes = smaller
	}
	l.sizes.Learn(p, bytes, l.now())
}

// Size returns the size of a body, in bytes, that was too large for upstream, and whether one was. Larger ones will be, too.
func (l *Lessons) Size(p Place) (bytes int, known bool) { return l.sizes.Known(p, l.now()) }

// LearnRefusal records that upstream refused a conversation's condensed history and then accepted the unchanged one. The loop is the position at
// which the open tool loop begins that needed its reasoning: the refusal may be about that loop only. 0: there was none.
func (l *Lessons) LearnRefusal(p Place, loop int) { l.refused.Learn(p, loop, l.now()) }

// Refusal returns the loop of a conversation's refusal, and whether there was one within RefusalHeld.
func (l *Lessons) Refusal(p Place) (loop int, known bool) { return l.refused.Own(p, l.now()) }

// ForgetRefusal records that upstream accepts the conversation's condensed history.
func (l *Lessons) ForgetRefusal(p Place) { l.refused.Forget(p) }
