package session_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// fixture is a registry over its own store, with helpers to send histories to it.
type fixture struct {
	t        *testing.T
	store    session.Store
	registry *session.Registry
	names    map[session.ThreadID]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "test.db"), Content: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &fixture{t: t, store: store, names: map[session.ThreadID]string{}}
	d.registry = d.another()
	return d
}

// another returns the registry of another replica.
func (d *fixture) another() *session.Registry {
	d.t.Helper()
	r := session.NewRegistry(d.store, secret)
	return r
}

var secret = session.Secret("the secret of the tests")

// query returns a history made of words. u.. is a user message, g.. the agent's text, s.. a system message. a.. is an action with a unique
// call id, o.. its result, and p.. another result (p1 of a1). c.. is an action whose call id is the word alone, which is not unique, and
// r.. its result. All actions k.. have the same call id, and q.. is a result of them.
func query(scope session.Scope, words string) session.Query {
	var messages []session.Message
	for _, w := range strings.Fields(words) {
		m := session.Message{Raw: []byte(fmt.Sprintf("%q", w))}
		copy(m.Digest[:], w)
		switch w[0] {
		case 's':
			m.Kind = session.System
		case 'u':
			m.Kind = session.User
		case 'g':
			m.Kind = session.Agent
		case 'a':
			m.Kind, m.Calls = session.Action, []string{"call-of-" + w + "-123456"}
		case 'o':
			m.Kind, m.Result = session.Observation, "call-of-a"+w[1:]+"-123456"
		case 'c':
			m.Kind, m.Calls = session.Action, []string{w}
		case 'p':
			m.Kind, m.Result = session.Observation, "call-of-a"+w[1:2]+"-123456"
		case 'k':
			m.Kind, m.Calls = session.Action, []string{"call-of-each-123456"}
		case 'q':
			m.Kind, m.Result = session.Observation, "call-of-each-123456"
		case 'r':
			m.Kind, m.Result = session.Observation, "c"+w[1:]
		}
		messages = append(messages, m)
	}
	return session.Query{
		Scope: scope, Purpose: session.PurposeMain, History: session.NewHistory(secret.Seed(scope), messages),
	}
}

// send resolves and logs a history and returns its resolution.
func (d *fixture) send(r *session.Registry, q session.Query) session.Resolution {
	d.t.Helper()
	res, err := r.Resolve(d.t.Context(), q)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := r.Append(d.t.Context(), &res, tally(&res, q)); err != nil {
		d.t.Fatal(err)
	}
	return res
}

func tally(res *session.Resolution, q session.Query) *session.Tally {
	from := res.CountedFrom("test")
	t := &session.Tally{Encoding: "test", From: from, Cum: []int{0}}
	if from > 0 {
		t.Cum[0] = res.Known.Tokens
	}
	for p := from + 1; p <= q.History.Len(); p++ {
		t.Cum = append(t.Cum, t.Cum[len(t.Cum)-1]+10)
	}
	return t
}

// payloads returns the log of a thread, without that of its parent.
func (d *fixture) payloads(id session.ThreadID) string {
	d.t.Helper()
	events, err := d.store.Events(d.t.Context(), id, 1, 10000)
	if err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		out = append(out, strings.Trim(string(e.Payload), `"`))
	}
	return strings.Join(out, " ")
}

func TestAppendsToOneThread(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	one := d.send(d.registry, query(anyone, "s1 u1"))
	two := d.send(d.another(), query(anyone, "s1 u1 a1 o1"))
	three := d.send(d.registry, query(anyone, "s2 u1 a1 o1 g1 u2"))
	if one.Thread.ID != two.Thread.ID || two.Thread.ID != three.Thread.ID {
		t.Errorf("threads %s, %s, %s", one.Thread.ID, two.Thread.ID, three.Thread.ID)
	}
	if got, want := d.payloads(one.Thread.ID), "s1 u1 a1 o1 s2 g1 u2"; got != want {
		t.Errorf("log: got %s, want %s", got, want)
	}
	if three.Known.Tokens != 30 || three.Source != session.SourcePrefix {
		t.Errorf("known %+v by %s", three.Known, three.Source)
	}
}

func TestForkSharesItsParentsPast(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	main := d.send(d.registry, query(anyone, "u1 a1 o1 g1 u2"))
	fork := d.send(d.registry, query(anyone, "u1 a1 o1 g1 u3"))
	if fork.Thread.Session != main.Thread.Session || fork.Thread.ID == main.Thread.ID {
		t.Fatalf("main %+v, fork %+v", main.Thread, fork.Thread)
	}
	if fork.Thread.Parent != main.Thread.ID || fork.Thread.ForkAt != 4 || d.payloads(fork.Thread.ID) != "u3" {
		t.Errorf("fork %+v with log %s", fork.Thread, d.payloads(fork.Thread.ID))
	}
	again := d.send(d.registry, query(anyone, "u1 a1 o1 g1 u3 g3"))
	onward := d.send(d.registry, query(anyone, "u1 a1 o1 g1 u2 g2"))
	if again.Thread.ID != fork.Thread.ID || onward.Thread.ID != main.Thread.ID {
		t.Error("main and fork are not continued separately")
	}
	replay := d.send(d.registry, query(anyone, "u1 a1 o1"))
	if replay.Match != session.MatchReplay || replay.Thread.ID != main.Thread.ID {
		t.Errorf("a known prefix resolved as %v in %s", replay.Match, replay.Thread.ID)
	}
}

func TestScopesAreIsolated(t *testing.T) {
	d := newFixture(t)
	words := "u1 a1 o1 g1 u2 a2 o2"
	own := d.send(d.registry, query(session.Scope{Tenant: "one", Key: "key"}, words))
	if err := d.registry.Answered(t.Context(), &own, "a long answer that leaves a trace of itself here", []string{"call-id-of-one"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, other := range []session.Scope{
		{Tenant: "two", Key: "key"}, {Tenant: "two"}, {Tenant: "one", Credential: "c", Key: "key"}, {Tenant: "one", Key: "ke"},
	} {
		q := query(other, words)
		q.Texts = func() []string { return []string{"a long answer that leaves a trace of itself here"} }
		res, err := d.registry.Resolve(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !res.New || res.Thread.Session == own.Thread.Session || res.Logged != 0 || res.Known.Known() {
			t.Errorf("%+v reached %+v", other, res.Thread)
		}
	}
}

func TestTracesLinkRewrittenHistories(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	main := d.send(d.registry, query(anyone, "u1 a1 o1 g1"))
	const summary = "The user wants the lines of notes.txt counted, and that was done."
	if err := d.registry.Answered(t.Context(), &main, summary, nil, []string{"read the notes file and summarise it"}); err != nil {
		t.Fatal(err)
	}
	f := func(name, words, text string, linked bool) {
		t.Helper()
		q := query(anyone, words)
		q.Texts = func() []string { return []string{text} }
		res := d.send(d.registry, q)
		if got := res.Thread.Session == main.Thread.Session; got != linked || res.Thread.ID == main.Thread.ID {
			t.Errorf("%s: linked is %v, in thread %s", name, got, res.Thread.ID)
		}
		if linked && (res.Thread.Parent != main.Thread.ID || res.Source != session.SourceTrace) {
			t.Errorf("%s: parent %s, source %s", name, res.Thread.Parent, res.Source)
		}
	}
	f("its summary carried over", "uA gA", "Context so far:\n"+summary+"\nGo on.", true)
	f("a rewritten first message, calls kept", "uB a1 o1 uC", "", true)
	f("a sub-agent's task", "uD", "<task>\nread the notes file and summarise it\n</task>", true)
	f("nothing in common", "uE", "Count the lines.", false)
}

// TestNamesAndCountersLinkNothing: unrelated conversations are not linked if their clients or models use names or counters as call ids.
func TestNamesAndCountersLinkNothing(t *testing.T) {
	for id, unique := range map[string]bool{
		"call_1": false, "0": false, "call_d5wg": false, "list_files": false, "WebSearch": false, "Search2Web": false, "S3GetObject": false,
		"d681pevks": false, "D681PEVKS": false, "D681PevK": false, "D681PevKs2": false, "call_123456": false, "call_1234567": true,
		"functions.Bash:0": false, "functions.read_file:12": false,
		"D681PevKs": true, "a0B1c2D3e": true, "call_9f8e7d6c5b4a": true, "toolu_01A09q90qw90lq917835lq9": true,
	} {
		if got := len(session.CallTraces(session.Hash{}, []string{id})) > 0; got != unique {
			t.Errorf("%s: %v", id, got)
		}
	}
}

func TestSameOpeningBeginsAnotherConversation(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	first := d.send(d.registry, query(anyone, "u1"))
	retry := d.send(d.registry, query(anyone, "u1"))
	if retry.Thread.ID != first.Thread.ID {
		t.Error("a retry of an unanswered request is another conversation")
	}
	if err := d.registry.Answered(t.Context(), &first, "", nil, nil); err != nil {
		t.Fatal(err)
	}
	second := d.send(d.registry, query(anyone, "u1"))
	if second.Thread.Session == first.Thread.Session {
		t.Error("an answered first prompt sent again is the same conversation")
	}
	d.send(d.registry, query(anyone, "u1 g1 u2"))
	third := d.send(d.registry, query(anyone, "u1"))
	if third.Thread.Session == second.Thread.Session {
		t.Error("a first prompt of a conversation that went on is the same conversation")
	}
	d.send(d.registry, query(anyone, "u8"))
	answered := d.send(d.registry, query(anyone, "u8 g8"))
	if again := d.send(d.registry, query(anyone, "u8")); again.Thread.Session == answered.Thread.Session {
		t.Error("a first prompt of a conversation that has its answer is the same conversation")
	}
	keyed := session.Scope{Tenant: "t", Key: "k"}
	one := d.send(d.registry, query(keyed, "u1"))
	d.send(d.registry, query(keyed, "u1 g1 u2"))
	two := d.send(d.registry, query(keyed, "u1"))
	if one.Thread.ID != two.Thread.ID {
		t.Error("with a session key, a retried first prompt is another thread")
	}
}

// TestSameOpeningIsKnownToBeAnsweredForLong: an opening that was answered long ago begins another conversation, even while one with the same
// opening waits for its first answer.
func TestSameOpeningIsKnownToBeAnsweredForLong(t *testing.T) {
	d, anyone := newFixture(t), session.Scope{Tenant: "t"}
	words := "u1"
	for n := range 40 {
		res := d.send(d.registry, query(anyone, words))
		must(t, d.registry.Answered(t.Context(), &res, "", nil, nil))
		words += fmt.Sprintf(" g%d u%d", n, n+2)
	}
	waiting := d.send(d.registry, query(anyone, "u1"))
	if other := d.send(d.registry, query(anyone, "u1")); other.Thread.Session == waiting.Thread.Session {
		t.Error("two conversations that begin at the same time are one")
	}
}

// TestOldForkIsProvenByItsAnswer: a history without a session key and without calls that leaves a thread far from its end belongs to the same
// conversation, because the answer that they share was relayed.
func TestOldForkIsProvenByItsAnswer(t *testing.T) {
	d, anyone := newFixture(t), session.Scope{Tenant: "t"}
	var words []string
	var main session.Resolution
	for n := range 40 {
		words = append(words, fmt.Sprintf("u%d", n))
		main = d.send(d.registry, query(anyone, strings.Join(words, " ")))
		must(t, d.registry.Answered(t.Context(), &main, "", nil, nil))
		words = append(words, fmt.Sprintf("g%d", n))
	}
	res, err := d.registry.Resolve(t.Context(), query(anyone, strings.Join(words[:20], " ")+" u-edited"))
	must(t, err)
	if res.Match != session.MatchInside || res.Thread.Parent != main.Thread.ID || res.Thread.ForkAt != 20 {
		t.Errorf("%v: a fork of %s at %d", res.Match, res.Thread.Parent, res.Thread.ForkAt)
	}
}

// TestSameGreetingBeginsAnotherConversation: conversations that share only the greeting of their agent are separate.
func TestSameGreetingBeginsAnotherConversation(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	seen := map[session.SessionID]bool{}
	for _, words := range []string{"s1 g1", "s1 g1 u1", "s1 g1 u2"} {
		res := d.send(d.registry, query(anyone, words))
		if seen[res.Thread.Session] {
			t.Errorf("%s is an earlier conversation", words)
		}
		seen[res.Thread.Session] = true
	}
}

// TestShortTextsLeaveNoTraces: an answer of at least 12 bytes links a history that quotes it, and so does one line of at least 32 bytes.
func TestShortTextsLeaveNoTraces(t *testing.T) {
	for size, want := range map[int]int{11: 0, 12: 1, 31: 1, 32: 2} {
		if got := len(session.AnswerTraces(session.Hash{}, strings.Repeat("x", size), nil)); got != want {
			t.Errorf("%d bytes leave %d traces, want %d", size, got, want)
		}
	}
}

// TestTokensAreRecountedInAnotherEncoding: a history whose prefix was counted in another encoding is counted from its beginning.
func TestTokensAreRecountedInAnotherEncoding(t *testing.T) {
	d := newFixture(t)
	d.send(d.registry, query(session.Scope{Tenant: "t"}, "u1 a1 o1"))
	res, err := d.registry.Resolve(t.Context(), query(session.Scope{Tenant: "t"}, "u1 a1 o1 a2 o2"))
	must(t, err)
	for encoding, want := range map[string]int{"test": 3, "another": 0} {
		if got := res.CountedFrom(encoding); got != want {
			t.Errorf("%s: counted from %d, want %d", encoding, got, want)
		}
	}
}

func TestParentKeysShareASession(t *testing.T) {
	d := newFixture(t)
	main := d.send(d.registry, query(session.Scope{Tenant: "t", Key: "main"}, "u1"))
	child := query(session.Scope{Tenant: "t", Key: "child"}, "u2")
	child.Parent = "main"
	sub := d.send(d.registry, child)
	grand := query(session.Scope{Tenant: "t", Key: "grandchild"}, "u3")
	grand.Parent = "child"
	subsub := d.send(d.registry, grand)
	later := d.send(d.registry, query(session.Scope{Tenant: "t", Key: "child"}, "u4"))
	for _, res := range []session.Resolution{sub, subsub, later} {
		if res.Thread.Session != main.Thread.Session || res.Begins {
			t.Errorf("%s is in another session", res.Thread.ID)
		}
	}
	early := query(session.Scope{Tenant: "t", Key: "child2"}, "u5")
	early.Parent = "main2"
	before := d.send(d.registry, early)
	after := d.send(d.registry, query(session.Scope{Tenant: "t", Key: "main2"}, "u6"))
	if before.Thread.Session != after.Thread.Session {
		t.Error("a child seen before its parent is in another session")
	}
	if !main.Begins || !before.Begins {
		t.Errorf("sessions begin: %v, %v", main.Begins, before.Begins)
	}
	for _, c := range []struct {
		thread session.Thread
		want   session.ThreadID
	}{{main.Thread, ""}, {sub.Thread, main.Thread.ID}, {subsub.Thread, sub.Thread.ID}, {later.Thread, ""}, {before.Thread, ""}} {
		if c.thread.Caller != c.want {
			t.Errorf("%s was called by %q, not %q", c.thread.ID, c.thread.Caller, c.want)
		}
	}
}

func TestSideRequestsBranchOff(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	main := d.send(d.registry, query(anyone, "u1 a1 o1"))
	side := query(anyone, "u1 a1 o1 g1 uSUGGEST")
	side.Purpose = session.PurposeSuggestion
	branch := d.send(d.registry, side)
	if !main.Begins || branch.Begins {
		t.Errorf("sessions begin: %v, %v", main.Begins, branch.Begins)
	}
	first := query(anyone, "u7 g7 uSUGGEST")
	first.Purpose = session.PurposeSuggestion
	if res := d.send(d.registry, first); !res.Begins {
		t.Errorf("a side request that is the first of its session begins nothing: %+v", res.Thread)
	}
	if branch.Thread.Parent != main.Thread.ID || branch.Thread.ForkAt != 4 || d.payloads(branch.Thread.ID) != "uSUGGEST" {
		t.Errorf("branch %+v with log %s", branch.Thread, d.payloads(branch.Thread.ID))
	}
	onward := d.send(d.registry, query(anyone, "u1 a1 o1 g1 u2"))
	if onward.Thread.ID != main.Thread.ID || d.payloads(main.Thread.ID) != "u1 a1 o1 g1 u2" {
		t.Errorf("main goes on in %s with log %s", onward.Thread.ID, d.payloads(main.Thread.ID))
	}
	retry := d.send(d.registry, side)
	if retry.Thread.ID != branch.Thread.ID {
		t.Error("a side request sent again branches off again")
	}
}

// TestLostWritesAreRepaired: the next request repairs what a replica lost, and two replicas that append the same messages
// log them once.
func TestLostWritesAreRepaired(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	d.send(d.registry, query(anyone, "u1"))
	late, err := d.registry.Resolve(t.Context(), query(anyone, "u1 a1 o1")) // resolved, never logged
	if err != nil {
		t.Fatal(err)
	}
	res := d.send(d.another(), query(anyone, "u1 a1 o1 a2 o2"))
	q := query(anyone, "u1 a1 o1")
	if err := d.registry.Append(t.Context(), &late, tally(&late, q)); err != nil {
		t.Fatal(err)
	}
	if got, want := d.payloads(res.Thread.ID), "u1 a1 o1 a2 o2"; got != want {
		t.Errorf("log: got %s, want %s", got, want)
	}
}

// lossy is a store whose appends lose their index entries while losing is set.
type lossy struct {
	session.Store
	losing bool
}

func (l *lossy) Append(ctx context.Context, b session.Batch) error {
	if l.losing {
		b.Places = nil
	}
	return l.Store.Append(ctx, b)
}

// TestLostIndexIsRepaired: an interrupted append leaves a log without its index. The next request writes the index and logs
// nothing twice.
func TestLostIndexIsRepaired(t *testing.T) {
	d := newFixture(t)
	store := &lossy{Store: d.store}
	r := session.NewRegistry(store, secret)
	anyone := session.Scope{Tenant: "t"}
	first := d.send(r, query(anyone, "u1 g1 u2"))
	store.losing = true
	d.send(r, query(anyone, "u1 g1 u2 a1 o1"))
	store.losing = false
	again := d.send(d.another(), query(anyone, "u1 g1 u2 a1 o1"))
	onward := d.send(d.another(), query(anyone, "u1 g1 u2 a1 o1 g2"))
	if again.Thread.ID != first.Thread.ID || onward.Thread.ID != first.Thread.ID {
		t.Error("a thread whose index was lost is forked")
	}
	if got, want := d.payloads(first.Thread.ID), "u1 g1 u2 a1 o1 g2"; got != want {
		t.Errorf("log: got %s, want %s", got, want)
	}
	if onward.Known.Pos != 5 {
		t.Errorf("the index knows %d positions, want 5", onward.Known.Pos)
	}
}

// TestLostIndexOfABeginningIsRepaired: a thread that lost its whole index is found by its derived id and continued, but not by another
// conversation that begins with the same words.
func TestLostIndexOfABeginningIsRepaired(t *testing.T) {
	for name, scope := range map[string]session.Scope{"keyed": {Tenant: "t", Key: "k"}, "not keyed": {Tenant: "t"}} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			r := session.NewRegistry(&lossy{Store: d.store, losing: true}, secret)
			first := d.send(r, query(scope, "s1 u1"))
			retry := d.send(r, query(scope, "s1 u1"))
			onward := d.send(d.another(), query(scope, "s1 u1 a1 o1"))
			again := d.send(d.another(), query(scope, "s1 u1 a1 o1 a2 o2"))
			for what, res := range map[string]session.Resolution{"retry": retry, "onward": onward, "again": again} {
				if res.Thread.ID != first.Thread.ID || res.Thread.Session != first.Thread.Session {
					t.Errorf("%s: another thread", what)
				}
			}
			if got, want := d.payloads(first.Thread.ID), "s1 u1 a1 o1 a2 o2"; got != want {
				t.Errorf("log: got %s, want %s", got, want)
			}
			if again.Known.Pos != 3 {
				t.Errorf("the index knows %d positions, want 3", again.Known.Pos)
			}
		})
	}
	d := newFixture(t)
	r := session.NewRegistry(&lossy{Store: d.store, losing: true}, secret)
	anyone := session.Scope{Tenant: "t"}
	first := d.send(r, query(anyone, "u1"))
	if err := r.Answered(t.Context(), &first, "", nil, nil); err != nil {
		t.Fatal(err)
	}
	if alike := d.send(d.another(), query(anyone, "u1")); alike.Thread.Session == first.Thread.Session {
		t.Error("an answered first prompt sent again is the same conversation")
	}
	keyed := session.Scope{Tenant: "t", Key: "k"}
	named := d.send(r, query(keyed, "u1"))
	must(t, r.Answered(t.Context(), &named, "", nil, nil))
	if retry := d.send(d.another(), query(keyed, "u1")); retry.Thread.ID != named.Thread.ID {
		t.Error("with a session key, an answered first prompt sent again is another thread")
	}
	gone := d.send(r, query(anyone, "u2 a1 o1"))
	if other := d.send(d.another(), query(anyone, "u2 a2 o2")); other.Thread.ID == gone.Thread.ID {
		t.Error("a history that parts from an unindexed one is in its thread")
	}
}

func TestConcurrentAppendsLogOnce(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	d.send(d.registry, query(anyone, "u1"))
	words := "u1 a1 o1 a2 o2 g1"
	var wg sync.WaitGroup
	for range 8 {
		r := d.another()
		wg.Go(func() {
			res, err := r.Resolve(context.Background(), query(anyone, words))
			if err != nil {
				t.Error(err)
				return
			}
			if err := r.Append(context.Background(), &res, tally(&res, query(anyone, words))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	res := d.send(d.registry, query(anyone, words))
	if got := d.payloads(res.Thread.ID); got != words {
		t.Errorf("log: got %s, want %s", got, words)
	}
}

func TestCondensationsAreFoundByContent(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	words := "u1 a1 o1 a2 o2 a3 o3"
	q := query(anyone, words)
	res := d.send(d.registry, q)
	view := session.Project(q.History, nil)
	c := session.Condensation{
		Prefix: 5, Hash: q.History.Chain[5], Forgotten: []session.Range{{From: 2, To: 6}}, Offset: 2,
		Summary: "what was done", SummaryTokens: 3,
	}
	if _, err := d.registry.Condense(t.Context(), &res, &view, c); err != nil {
		t.Fatal(err)
	}
	f := func(name, words string, want string) {
		t.Helper()
		q := query(anyone, words)
		res := d.send(d.another(), q)
		cs, err := d.registry.Condensations(t.Context(), &res)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		view := session.Project(q.History, cs)
		for _, item := range view.Items {
			got = append(got, strings.Trim(string(item.Raw), `"`)+item.Summary)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", name, strings.Join(got, " "), want)
		}
	}
	f("the same again", words, "u1 what was done a3 o3")
	f("it goes on", words+" a4 o4", "u1 what was done a3 o3 a4 o4")
	f("a fork after the prefix", "u1 a1 o1 a2 o2 a3 o9", "u1 what was done a3 o9")
	f("an edit inside the prefix", "u1 g1 o1 a2 o2 a3 o3", "u1 g1 o1 a2 o2 a3 o3")
}

// TestConcurrentRunsWithTheSameOpeningAreSeparated: the second run's first request looks like a retry of the first run's, so
// its answer is recorded in the first run's thread. Its next request shows that it is a separate run.
func TestConcurrentRunsWithTheSameOpeningAreSeparated(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	answer := func(words, call string) session.Resolution {
		t.Helper()
		res := d.send(d.registry, query(anyone, words))
		must(t, d.registry.Answered(t.Context(), &res, "", []string{"call-of-" + call + "-123456"}, nil))
		return res
	}
	first := d.send(d.registry, query(anyone, "u1"))
	second := d.send(d.registry, query(anyone, "u1"))
	if first.Thread.ID != second.Thread.ID {
		t.Fatal("a request sent again before it is answered is another conversation")
	}
	must(t, d.registry.Answered(t.Context(), &first, "", []string{"call-of-a1-123456"}, nil))
	must(t, d.registry.Answered(t.Context(), &second, "", []string{"call-of-a2-123456"}, nil))
	one, two := answer("u1 a1 o1", "a3"), answer("u1 a2 o2", "a4")
	if one.Thread.Session == two.Thread.Session || one.Thread.ID != first.Thread.ID {
		t.Error("two runs are one session")
	}
	if again := answer("u1 a2 o2 a4 o4", "a5"); again.Thread.ID != two.Thread.ID {
		t.Error("the second run does not go on in its thread")
	}
	rewritten := d.send(d.registry, query(anyone, "u1 u9 a3 o3"))
	if rewritten.Thread.Session != first.Thread.Session {
		t.Error("a history that was compacted behind its first message is another session")
	}
}
