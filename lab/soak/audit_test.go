package soak

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// logged puts a line's history into a store, as the proxy does, and gives what audits it.
func logged(t *testing.T, l *line) (*auditor, held) {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "dewpoint.db"), Content: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	a := newAuditor(store, newTally())
	l.last, l.placed = l.exchange(), []placement{{}}
	h, err := a.held(l)
	if err != nil {
		t.Fatal(err)
	}
	registry := session.NewRegistry(store, session.Secret(secret))
	res, err := registry.Resolve(t.Context(), session.Query{Scope: l.scope(), Purpose: session.PurposeMain, History: h.history})
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.Append(t.Context(), &res, &session.Tally{Cum: make([]int, h.history.Len()+1)}); err != nil {
		t.Fatal(err)
	}
	l.placed[0].thread, l.placed[0].session = string(res.Thread.ID), string(res.Thread.Session)
	l.last.deliver(l.last.sent)
	return a, h
}

// TestAuditSees: a log that differs from what the agent holds is seen.
func TestAuditSees(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *line) // what the agent holds after its history was logged
		want   string
	}{
		"nothing":            {func(*line) {}, ""},
		"a message more":     {func(l *line) { l.add(text("user", "more")) }, "the client 9 up to"},
		"a message less":     {func(l *line) { l.messages = l.messages[:len(l.messages)-1] }, "the client 7 up to"},
		"another message":    {func(l *line) { l.messages[1] = text("user", "another").raw() }, "the client 8 up to"},
		"spelled otherwise":  {func(l *line) { l.messages[1] = slices.Concat([]byte("{ "), l.messages[1][1:]) }, "position 1: logged is"},
		"another's":          {func(l *line) { l.family.tenant = newTenants(1)[0] }, "is tenant-1's"},
		"forwarded unlogged": {func(l *line) { l.last.deliver(without(l, 1)) }, "the log gives"},
	} {
		t.Run(name, func(t *testing.T) {
			_, l := sample()
			l.family.tenant.condenser.logs = true
			a, _ := logged(t, l)
			before := l.last.newest.Load()
			c.change(l)
			last := l.last.newest.Load()
			l.last = l.exchange()
			if l.last.deliver(l.last.sent); last != before {
				l.last.deliver(last.body)
			}
			h, err := a.held(l)
			if err != nil {
				t.Fatal(err)
			}
			if err = a.whole(t.Context(), h); err == nil {
				err = a.view(t.Context(), h)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestAuditSeesOthersTexts: a session that holds another family's texts, or belongs to another tenant, is seen.
func TestAuditSeesOthersTexts(t *testing.T) {
	_, l := sample()
	a, _ := logged(t, l)
	id := session.SessionID(l.placed[0].session)
	if err := a.session(t.Context(), id, l.family); err != nil {
		t.Error(err)
	}
	other := *l.family
	other.number++
	if err := a.session(t.Context(), id, &other); err == nil || !strings.Contains(err.Error(), "holds mk-t1-f4") {
		t.Errorf("another family's: %v", err)
	}
	other.tenant = newTenants(1)[0]
	if err := a.session(t.Context(), id, &other); err == nil || !strings.Contains(err.Error(), "is tenant-1's") {
		t.Errorf("another tenant's: %v", err)
	}
}

// TestBelongingSees: what is shared is seen, and what is split, too, unless something was lost.
func TestBelongingSees(t *testing.T) {
	now := time.Now()
	at := func(session, thread string) placement {
		return placement{session: session, thread: thread, from: now, to: now}
	}
	for name, c := range map[string]struct {
		first, second []placement // of a family each
		outage        bool
		number        int // of the first family; 0: 4
		want          string
		splits        int
	}{
		"apart":             {first: []placement{at("s1", "t1"), at("s1", "t1")}, second: []placement{at("s2", "t2")}},
		"a shared session":  {first: []placement{at("s1", "t1")}, second: []placement{at("s1", "t2")}, want: "nothing is shared between conversations"},
		"a shared thread":   {first: []placement{at("s1", "t1")}, second: []placement{at("s2", "t1")}, want: "nothing is shared between conversations"},
		"two sessions":      {first: []placement{at("s1", "t1"), at("s3", "t1")}, want: "one conversation is one session"},
		"two threads":       {first: []placement{at("s1", "t1"), at("s1", "t3")}, want: "one line is one thread"},
		"two, after a loss": {first: []placement{at("s1", "t1"), at("s3", "t3")}, outage: true, splits: 2},
		"two, the first prompt again": {first: []placement{{session: "s1", thread: "t1", from: now, prompt: true},
			{session: "s3", thread: "t3", from: now.Add(1)}}, number: 16, splits: 2},
		"two, a named first prompt again": {first: []placement{{session: "s1", thread: "t1", from: now, prompt: true},
			{session: "s3", thread: "t1", from: now.Add(1)}}, number: 4, want: "one conversation is one session"},
		"two, after an error": {first: []placement{{session: "s1", thread: "t1", from: now, lost: true}, {from: now.Add(1)},
			{session: "s3", thread: "t3", from: now.Add(2)}}, splits: 2},
		"two, long after a loss": {first: []placement{{session: "s1", thread: "t1", from: now, lost: true},
			{session: "s1", thread: "t1", from: now.Add(1)}, {session: "s1", thread: "t3", from: now.Add(2)}}, want: "one line is one thread"},
		"without the store": {first: []placement{at("s1", "t1"), at("", ""), at("s1", "t1")}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &belonging{tally: newTally(), weather: newWeather(), owners: map[string]*family{}}
			if c.outage {
				b.weather.lost(now, now)
			}
			for i, placed := range [][]placement{c.first, c.second} {
				f := newFamily(max(c.number, 4)+i, newTenants(3), 1)
				f.lines[0].placed = placed
				b.family(f)
			}
			if got, splits := rules(b.tally), b.tally.sum(groupSplit, ""); got != c.want || splits != c.splits {
				t.Errorf("%q and %d splits, want %q and %d", got, splits, c.want, c.splits)
			}
		})
	}
}

// TestAgentsAreDeterministic: what agents say follows from the seed.
func TestAgentsAreDeterministic(t *testing.T) {
	say := func(seed uint64) string {
		f := newFamily(0, newTenants(2), seed)
		body, _ := f.lines[0].body()
		return string(body) + f.author.text(9)
	}
	if first, again := say(1), say(1); first != again || first == say(2) {
		t.Error("the seed does not decide")
	}
	twin := newFamily(1, newTenants(2), 1)
	if first := newFamily(0, newTenants(2), 1); string(encode(first.lines[0].messages)) != string(encode(twin.lines[0].messages)) {
		t.Error("twins begin differently")
	}
}
