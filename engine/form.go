package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Form is what goes upstream for a turn. Nothing changes a form: each step takes one and returns the next, so that any of them may be used
// concurrently. The form that upstream accepts is the one to settle.
type Form struct {
	turn   *Turn
	place  session.Resolution // of the history in the log, as last read or written
	bound  bound
	shown  projection
	made   []session.Condensation // those of the view that were made for this request
	asked  asked
	known  known
	relief relief
	calls  hiddenCalls
	waits  waits
	logged *logWrite // of the request's messages; nil: it has not begun
}

// asked is what the client, its user or its budget wants done about condensing.
type asked struct {
	wish  Wish
	limit int // tokens above which the history is to be condensed; 0: none
}

// known is what the engine knows besides the request when a step begins. A form carries it, so that what is decided follows from the form.
type known struct {
	now    time.Time
	paused bool // no model is asked: the store has lost what models wrote
	usage  usage
}

// knowing returns the form with what the engine knows now.
func (f *Form) knowing() *Form {
	e := f.turn.engine
	return f.with(func(next *Form) {
		next.known = known{now: e.o.Now(), paused: e.summaries.Paused()}
		next.known.usage, _ = e.memory.usages.Get(f.place.Thread.ID)
	})
}

// waits is how a request waits for condensations.
type waits struct {
	task  *task         // that works on this form; nil: the request itself
	soFar time.Duration // time the request has already waited
	later condense.Job  // writes the summary for excerpts that stand in for it; nil: none
}

// form returns the form of a turn that shows the history under condensations.
func (t *Turn) form(applied []session.Condensation) *Form {
	f := &Form{turn: t, place: t.place, bound: t.engine.memory.boundOf(t.place.Thread.ID), asked: asked{t.in.Wish, t.in.Limit}}
	f.relief.window = t.model.Window
	f.shown = f.project(applied)
	return f.knowing()
}

// with returns a changed copy of the form.
func (f *Form) with(change func(*Form)) *Form {
	next := *f
	change(&next)
	return &next
}

// showing returns the form that shows p.
func (f *Form) showing(p projection) *Form { return f.with(func(next *Form) { next.shown = p }) }

// at returns a copy of the history's place, which a call of the registry may change.
func (f *Form) at() *session.Resolution {
	place := clonePlace(f.place)
	return &place
}

// clonePlace returns a copy of r that can be written to while r is read.
func clonePlace(r session.Resolution) session.Resolution {
	if r.Base != nil {
		base := clonePlace(*r.Base)
		r.Base = &base
	}
	return r
}

// moved returns the form at another place.
func (f *Form) moved(place *session.Resolution) *Form {
	return f.with(func(next *Form) { next.place = *place })
}

// Turn returns what was recognised about the request.
func (f *Form) Turn() *Turn { return f.turn }

// Place returns the history's place in the log.
func (f *Form) Place() *session.Resolution { return &f.place }

// WithoutText returns a copy of the form for use once its answer has begun. It refers to none of the request's bytes, so that they can be
// freed while a slow client reads. Answered, Used, Save, Compare and the methods that report what was done work on the copy;
// it can no longer be forwarded, condensed or changed.
func (f *Form) WithoutText() *Form {
	bare := *f.turn
	if f.turn.Recognised() {
		counted := *f.turn.counted()
		counted.tally.Count = nil
		bare.counted = func() *counts { return &counted }
	}
	bare.in.Body, bare.in.Header = nil, nil
	split := f.turn.in.Split
	bare.in.Split = &dialect.Request{
		Model: split.Model, MaxOutput: split.MaxOutput, Choices: split.Choices, Kept: split.Kept, Stores: split.Stores,
	}
	bare.history = f.turn.history.WithoutMessages()
	bare.place = f.place.WithoutText()
	bare.hidden = hidden{}
	return &Form{
		turn: &bare, place: bare.place, shown: projection{attached: f.shown.attached}, made: f.made, asked: f.asked, logged: f.logged,
		relief: relief{verbatim: f.relief.verbatim},
	}
}

// Condensed returns the condensations that were made for this request and are part of what goes upstream.
func (f *Form) Condensed() []session.Condensation {
	if f.verbatim() {
		return nil
	}
	return f.made
}

// Sent returns the size of what goes upstream, uncalibrated.
func (f *Form) Sent() session.Size {
	if f.verbatim() {
		return f.turn.Before()
	}
	return f.size()
}

// Adjust calibrates a count by what upstream has reported for the client's requests to this model.
func (f *Form) Adjust(n int) int {
	return f.turn.engine.o.Tokens.Adjust(f.turn.calibration(f.shown.attached), n)
}

// LimitTo returns the form that is condensed above that many tokens, unless the session is held out.
func (f *Form) LimitTo(tokens int) *Form {
	if f.turn.uncondensed() || f.asked.limit > 0 && tokens >= f.asked.limit {
		return f
	}
	return f.with(func(next *Form) { next.asked.limit = tokens })
}

// Exceeds reports whether what would be forwarded has more than limit tokens.
func (f *Form) Exceeds(limit int) bool {
	return f.turn.Recognised() && f.calibrate(f.size().Tokens) > limit
}

// MaxOutput returns how many tokens the answer may have: the client's limit, capped by the model's output limit or, where that is not
// known, by its window. 0: not known.
func (f *Form) MaxOutput() int {
	asked := f.turn.in.Split.MaxOutput
	if asked <= 0 {
		return f.turn.model.MaxOutput
	}
	return min(asked, cmp.Or(f.turn.model.MaxOutput, f.relief.window, asked))
}

// verbatim reports whether the client's body is forwarded unchanged, whatever the view.
func (f *Form) verbatim() bool {
	return f.asked.wish == WishOff || f.turn.in.Tenant.Passes() || f.relief.verbatim
}

// changed reports whether what goes upstream differs from the client's body.
func (f *Form) changed() bool {
	return !f.verbatim() && (!f.shown.view.Identity() && !f.isStored() || f.Offers() || len(f.calls.tail) > 0)
}

// alternates reports whether upstream is known to require alternating roles.
func (f *Form) alternates() bool { return f.relief.alternates || f.turn.model.Alternates }

// project returns the view of the history under condensations.
func (f *Form) project(applied []session.Condensation) projection {
	return f.turn.project(applied, len(f.place.Thread.Condensations), f.bound, f.binding())
}

// asAccepted returns the form that withholds the view and forwards the client's history in the form that upstream accepts: without
// condensations, and without the sealed reasoning that it has refused.
func (f *Form) asAccepted() *Form {
	withheld := f.shown
	return f.with(func(next *Form) {
		next.shown = f.project(nil)
		next.relief.withheld, next.relief.verbatim = &withheld, true
	})
}

// rewrites reports whether the body that goes upstream is not the client's own: it is changed, or without sealed reasoning.
func (f *Form) rewrites() bool {
	if f.turn.remote() {
		return f.changed() // what upstream keeps goes with its id, as it is
	}
	stripped := f.relief.strippedTo > 0 || f.relief.withheld != nil
	return f.changed() || stripped && (!f.shown.view.Identity() || f.shown.isLoose())
}

// Body returns the body that goes upstream, in pieces: the client's body with the view in place of its messages, or the body itself if
// nothing has changed.
func (f *Form) Body() [][]byte {
	if !f.rewrites() {
		return [][]byte{f.turn.client().Body}
	}
	return f.joinBody(f.messages())
}

// joinBody returns the request's body with the given messages in place of its own.
func (f *Form) joinBody(messages [][]byte) [][]byte {
	split := f.turn.in.Split
	if f.Offers() {
		split = f.turn.in.Dialect.Offer(split, f.turn.hidden.tools)
	}
	if d, can := f.turn.in.Dialect.(dialect.Unbinder); can && f.shown.isLoose() {
		split = d.Unbind(split)
	}
	return f.turn.in.Dialect.Join(split, messages)
}

// Header returns the header that asks upstream to drop reasoning bound to another history; empty if none is needed.
func (f *Form) Header() (name, value string) {
	if d, can := f.turn.in.Dialect.(dialect.Unbinder); can && f.shown.isLoose() && f.rewrites() {
		return d.UnbindHeader()
	}
	return "", ""
}

// messages returns the messages that go upstream: the view's, and those of hidden calls.
func (f *Form) messages() [][]byte {
	items, record := f.rendered()
	messages, at := make([][]byte, 0, len(items)+len(f.calls.tail)), -1
	for i := range items {
		if i == record {
			at = len(messages)
		}
		if items[i].Parts != nil {
			messages = append(messages, items[i].Parts...)
		} else {
			messages = append(messages, items[i].Raw)
		}
	}
	if d, can := f.turn.in.Dialect.(dialect.Marker); can && at >= 0 {
		messages[at] = d.Mark(f.turn.in.Split, messages, at)
	}
	return append(messages, f.calls.tail...)
}

// rendered returns the view's items as they go upstream, and the index of the one that consists of the record alone; -1: there is none.
func (f *Form) rendered() (items []session.Item, record int) {
	items, record = f.turn.rendered(f.shown.view.Items)
	if !f.alternates() {
		return items, record
	}
	items = alternate(f.turn.in.Dialect, items)
	return items, slices.IndexFunc(items, func(i session.Item) bool { return i.Index < 0 && i.Summary != "" })
}

// Newest returns the newest condensation of what goes upstream, zero if there is none.
func (f *Form) Newest() (id session.CondensationID) {
	if n := len(f.shown.applied); n > 0 && !f.verbatim() {
		id = f.shown.applied[n-1].ID
	}
	return id
}
