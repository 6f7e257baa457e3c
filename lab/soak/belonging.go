package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// belonging checks that nothing belongs to two, and that one conversation is one session.
type belonging struct {
	tally   *tally
	weather *weather
	owners  map[string]*family // of sessions and threads, by their names
}

// family checks one of them, by what the proxy said of each exchange: all of it is in one session, a title request only if it names it,
// and a line that only grows stays in one thread.
func (b *belonging) family(f *family) {
	b.own(f)
	session := ""
	for _, l := range f.lines {
		if l.kind != lineSide || f.naming != unnamed {
			b.one(l, &session, "session", func(p placement) string { return p.session })
		}
	}
	for _, l := range f.lines {
		thread := ""
		b.one(l, &thread, "thread", func(p placement) string { return p.thread })
	}
}

// own checks that no session and no thread is another family's too.
func (b *belonging) own(f *family) {
	for _, l := range f.lines {
		for _, p := range l.placed {
			for kind, id := range map[string]string{"session": p.session, "thread": p.thread} {
				if id == "" {
					continue
				}
				name := kind + " " + id
				if owner := b.owners[name]; owner != nil && owner != f {
					b.tally.violate("nothing is shared between conversations", l.name(), "%s is also of %s, family %d",
						name, owner.tenant.name, owner.number)
				}
				b.owners[name] = f
			}
		}
	}
}

// one checks that a line's requests are all in the first session or thread that was told.
func (b *belonging) one(l *line, first *string, kind string, of func(placement) string) {
	rule, what := "one line is one thread", l.kind+" in two threads"
	if kind == "session" {
		rule, what = "one conversation is one session", l.kind+" in a session of its own"
	}
	for _, p := range l.placed {
		is := of(p)
		if is == "" {
			continue
		}
		if *first == "" {
			*first = is
		}
		if kind == "session" {
			b.tally.count(groupChecked, "requests placed in their conversation's session")
		}
		if is != *first {
			b.split(l, p, rule, what, fmt.Sprintf("%s: %s is in %s %s, it began in %s", l.name(), p.exchange, kind, is, *first))
			return
		}
	}
}

// split counts what is split in two, by whether something was lost right before; where nothing was, it is a violation.
func (b *belonging) split(l *line, at placement, rule, what, detail string) {
	if cause := b.loss(l, at); cause != "" {
		b.tally.split(what+", after "+cause, detail+l.family.story())
		return
	}
	b.tally.violate(rule, fmt.Sprintf("family %d", l.family.number), "%s, though nothing was lost: %s", detail, l.family.story())
}

// lookBack is how many of a family's requests before a line begins may have lost what it needs: a sub-agent is known by
// the answer before it.
const lookBack = 3

// loss is why what a request needed may have been lost, empty if it cannot have been: what one request loses the next of
// its line repairs, so it is those of its line since the last that lost nothing, and where there is none of these, those
// of the family before the line began.
func (b *belonging) loss(l *line, at placement) string {
	cause := b.lost(at)
	sound := false
	for _, p := range slices.Backward(l.placed) {
		if cause != "" || sound {
			break
		}
		if p.from.Before(at.from) {
			cause = b.lost(p)
			if p.prompt && l.family.naming == unnamed {
				cause = "the first prompt, answered already, came again without a session id"
			}
			sound = cause == "" && p.thread != ""
		}
	}
	if cause == "" && !sound {
		cause = b.lostBefore(l)
	}
	return cause
}

// lost is why a request may have lost its writes.
func (b *belonging) lost(p placement) string {
	switch {
	case b.weather.touched(p.from, p.to):
		return "the store was away, stopped or killed"
	case p.lost && p.thread == "":
		return "a request without the store"
	case p.lost:
		return "its replica was killed"
	}
	return ""
}

// lostBefore is why what a line begins with may be lost.
func (b *belonging) lostBefore(l *line) string {
	var before []placement
	for _, other := range l.family.lines {
		for _, p := range other.placed {
			if p.from.Before(l.placed[0].from) {
				before = append(before, p)
			}
		}
	}
	slices.SortFunc(before, func(x, y placement) int { return x.from.Compare(y.from) })
	for _, p := range before[max(0, len(before)-lookBack):] {
		if cause := b.lost(p); cause != "" {
			return cause
		}
	}
	return ""
}

// story is where a family's requests were placed, the newest of them.
func (f *family) story() string {
	var b strings.Builder
	for _, l := range f.lines {
		fmt.Fprintf(&b, "\n%s:", l.name())
		for _, p := range l.placed[max(0, len(l.placed)-8):] {
			fmt.Fprintf(&b, " %s=%.6s/%.6s", p.exchange, p.session, p.thread)
		}
	}
	return b.String()
}

// sessions checks each session's record in the store: its tenant, and that its threads hold its family's texts alone.
func (a *auditor) sessions(ctx context.Context, owners map[string]*family) error {
	var errs []error
	for name, f := range owners {
		id, is := strings.CutPrefix(name, "session ")
		if !is {
			continue
		}
		if err := a.session(ctx, session.SessionID(id), f); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *auditor) session(ctx context.Context, id session.SessionID, f *family) error {
	s, err := a.store.Session(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil // it was lost before anything of it was written down; where its requests are now is checked elsewhere
	}
	if err != nil {
		return fmt.Errorf("read session %s: %w", id, err)
	}
	if s.Tenant != f.tenant.name {
		return fmt.Errorf("session %s of %s is %s's", id, f.tenant.name, s.Tenant)
	}
	for _, thread := range s.Threads {
		if err := a.texts(ctx, thread, f); err != nil {
			return err
		}
	}
	a.tally.count(groupChecked, "sessions read from the store")
	return nil
}

// texts checks whose texts a thread's own log holds.
func (a *auditor) texts(ctx context.Context, id session.ThreadID, f *family) error {
	t, err := a.thread(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil // the session's record was kept, the thread's not
	}
	if err != nil {
		return err
	}
	if t.Tenant != f.tenant.name {
		return fmt.Errorf("thread %s of %s is %s's", id, f.tenant.name, t.Tenant)
	}
	entries, err := a.entries(ctx, id)
	if err != nil {
		return err
	}
	owners := []mark{{Tenant: f.tenant.number, Family: f.number}, {Tenant: shared, Family: f.number / 2}}
	for _, e := range entries {
		for m := range marksIn(e.Payload) {
			is := parseMark(m)
			if !slices.Contains(owners, mark{Tenant: is.Tenant, Family: is.Family}) {
				return fmt.Errorf("thread %s of family %d holds %s", id, f.number, m)
			}
		}
	}
	a.tally.count(groupChecked, "threads searched for others' texts")
	return nil
}
