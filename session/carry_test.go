package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// cut replaces results in a query, like a client that shortens old results.
func cut(q session.Query, scope session.Scope, results ...string) session.Query {
	messages := slices.Clone(q.History.Messages)
	for i := range messages {
		if slices.Contains(results, strings.Trim(string(messages[i].Raw), `"`)) {
			messages[i].Raw = []byte(`"-"`)
			messages[i].Digest = session.Hash{1}
		}
	}
	q.History = session.NewHistory(secret.Seed(scope), messages)
	return q
}

// shown returns the view of a history that another replica has resolved and logged.
func (d *fixture) shown(q session.Query) string {
	d.t.Helper()
	res := d.send(d.another(), q)
	applied, err := d.registry.Condensations(d.t.Context(), &res)
	must(d.t, err)
	view := session.Project(q.History, applied)
	var out []string
	for _, item := range view.Items {
		text := strings.Trim(string(item.Raw), `"`) + item.Summary
		if item.Strip {
			text += "-"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// condensed sends a history, hides positions of it and returns its resolution.
func (d *fixture) condensed(q session.Query, summary string, gone session.Range) session.Resolution {
	d.t.Helper()
	res := d.send(d.registry, q)
	applied, err := d.registry.Condensations(d.t.Context(), &res)
	must(d.t, err)
	view := session.Project(q.History, applied)
	_, err = d.registry.Condense(d.t.Context(), &res, &view, session.Condensation{
		Prefix: gone.To - 1, Hash: q.History.Chain[gone.To-1], Forgotten: []session.Range{gone}, Offset: gone.From,
		Summary: summary, SummaryTokens: 3,
	})
	must(d.t, err)
	return res
}

// TestCondensationsAreCarriedOver: a condensation applies as long as the messages that it hides are unchanged, even if a message before
// them changed.
func TestCondensationsAreCarriedOver(t *testing.T) {
	scope := session.Scope{Tenant: "t"}
	const words = "u1 a1 o1 a2 o2 a3 o3 a4 o4"
	f := func(name, later, want string, results ...string) {
		t.Helper()
		d := newFixture(t)
		d.condensed(query(scope, words), "first", session.Range{From: 2, To: 4})
		d.condensed(query(scope, words), "second", session.Range{From: 4, To: 6})
		q := cut(query(scope, later), scope, results...)
		if got := d.shown(q); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if got := d.shown(q); got != want {
			t.Errorf("%s, sent again: got %s, want %s", name, got, want)
		}
	}
	f("a clock", "u9 a1 o1 a2 o2 a3 o3 a4 o4 a5 o5", "u9 second a3 o3 a4 o4 a5 o5")
	f("a message more before it", "u9 u1 a1 o1 a2 o2 a3 o3 a4 o4", "u9 u1 second a3 o3 a4 o4")
	f("a message less before it", "a1 o1 a2 o2 a3 o3 a4 o4 a5 o5", "second a3 o3 a4 o4 a5 o5")
	f("an old result cut", words+" a5 o5", "u1 second a3 o3 a4 o4 a5 o5", "o1")
	f("each old result cut", words+" a5 o5", "u1 second a3 - a4 o4 a5 o5", "o1", "o2", "o3")
	f("both", "u9 a1 o1 a2 o2 a3 o3 a4 o4", "u9 second a3 o3 a4 o4", "o2")
	f("another answer", "u1 a1 o1 g2 u2 a3 o3 a4 o4", "u1 first g2 u2 a3 o3 a4 o4")
	f("another answer after a cut result", "u1 a1 o1 a2 o2 g3 u3", "u1 first a2 - g3 u3", "o2")
	f("another first answer", "u1 g1 u2 a2 o2 a3 o3 a4 o4", "u1 g1 u2 a2 o2 a3 o3 a4 o4")
	f("nothing but its end", "u9 a3 o3 a4 o4", "u9 a3 o3 a4 o4")
}

// TestCondensationsApplyAfterResultsAreCut: a condensation is carried over, however many results it hides, when the client cuts some of
// them. The same is true when it sends the cut results again, even after another first message.
func TestCondensationsApplyAfterResultsAreCut(t *testing.T) {
	for _, n := range []int{6, 24} {
		for name, results := range map[string]string{"the oldest": "o1", "the newest": fmt.Sprint("o", n-4), "all": steps("", n-2)} {
			d, scope := newFixture(t), session.Scope{Tenant: "t"}
			for i := 1; i < n; i++ {
				d.send(d.registry, query(scope, "u1"+steps("", i)))
			}
			d.condensed(query(scope, "u1"+steps("", n)), "sum", session.Range{From: 2, To: 2*n - 2})
			gone := slices.DeleteFunc(strings.Fields(results), func(w string) bool { return w[0] != 'o' })
			for _, first := range []string{"u1", "u1", "u8", "u9"} {
				got := d.shown(cut(query(scope, first+steps("", n+1)), scope, gone...))
				if want := first + " sum" + strings.TrimPrefix(steps("", n+1), steps("", n-2)); got != want {
					t.Errorf("%s of %d: got %s, want %s", name, n, got, want)
				}
			}
		}
	}
}

// TestCondensationsApplyWhenAMessageChangesEachTime: condensations apply although the client edits the same message, such as one
// with a clock, before each request.
func TestCondensationsApplyWhenAMessageChangesEachTime(t *testing.T) {
	for name, client := range map[string]struct {
		key          string
		opening      string // before the message with the clock
		answer, next string
		side         session.Purpose // of side requests with the newest messages, sent in between; empty for none
	}{
		"first message":           {answer: "a", next: "o"},
		"a later message":         {opening: "u1 g1", answer: "a", next: "o"},
		"short call ids":          {key: "k", answer: "c", next: "r"},
		"short call ids, later":   {key: "k", opening: "u1 g1", answer: "c", next: "r"},
		"no calls":                {key: "k", answer: "g", next: "u"},
		"no calls, later message": {key: "k", opening: "u1 g1", answer: "g", next: "u"},
		"titles in between":       {key: "k", opening: "u1 g1", answer: "g", next: "u", side: session.PurposeTitle},
		"sub-agents in between":   {key: "k", opening: "u1 g1", answer: "a", next: "o", side: session.PurposeMain},
	} {
		t.Run(name, func(t *testing.T) {
			d, scope := newFixture(t), session.Scope{Tenant: "t", Key: client.key}
			words, clock := "", len(strings.Fields(client.opening))+1
			gone := clock // the last position that is hidden, if it is after the clock
			for step := range 12 {
				n := string(rune('a' + step))
				words += " " + client.answer + n + " " + client.next + n
				q := query(scope, client.opening+" u0"+n+words)
				want := q.History.Len() - (gone - clock)
				if gone > clock {
					want++ // the summary
				}
				if got := len(strings.Fields(d.shown(q))); got != want {
					t.Fatalf("step %d: %d messages are shown, want %d", step, got, want)
				}
				if step%3 == 2 {
					d.condensed(q, "sum", session.Range{From: gone + 1, To: q.History.Len() - 1})
					gone = q.History.Len() - 2
				}
				if client.side != "" {
					side := query(scope, "u5"+n+" "+client.answer+n+" "+client.next+n+" u6")
					side.Purpose = client.side
					d.send(d.registry, side)
				}
			}
		})
	}
}

// TestCondensationsAreNotCarriedToOtherScopes: the same messages in another scope are a different run.
func TestCondensationsAreNotCarriedToOtherScopes(t *testing.T) {
	d := newFixture(t)
	d.condensed(query(session.Scope{Tenant: "t", Key: "k"}, "u1 a1 o1 a2 o2 a3 o3"), "secret", session.Range{From: 2, To: 4})
	for _, other := range []session.Scope{{Tenant: "t"}, {Tenant: "u", Key: "k"}, {Tenant: "t", Key: "k2"}, {Tenant: "t", Key: "k", Credential: "c"}} {
		const words = "u9 a1 o1 a2 o2 a3 o3 a4 o4"
		if got := d.shown(query(other, words)); got != words {
			t.Errorf("%+v is shown %s", other, got)
		}
	}
}

// TestReasoningBeforeAChangedHeadIsStripped: reasoning that was sealed under the old head does not fit the new one.
func TestReasoningBeforeAChangedHeadIsStripped(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t"}
	sealed := func(words string) session.Query {
		q := query(scope, words)
		for i := range q.History.Messages {
			q.History.Messages[i].Sealed = q.History.Messages[i].Kind == session.Action
		}
		return q
	}
	d.condensed(sealed("u1 a1 o1 a2 o2 a3 o3"), "sum", session.Range{From: 2, To: 4})
	if got, want := d.shown(sealed("u9 a1 o1 a2 o2 a3 o3 a4 o4")), "u9 sum a2- o2 a3- o3 a4- o4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := d.shown(sealed("u9 a1 o1 a2 o2 a3 o3 a4 o4 a5 o5")), "u9 sum a2- o2 a3- o3 a4- o4 a5 o5"; got != want {
		t.Errorf("as it goes on: got %s, want %s", got, want)
	}
	d.condensed(sealed("u11 a11 o11 a12 o12 a13 o13 a14 o14"), "sum", session.Range{From: 6, To: 8})
	changed := sealed("u19 a11 o11 a12 o12 a13 o13 a14 o14 a15 o15")
	if got, want := d.shown(changed), "u19 a11- o11 a12- o12 sum a14- o14 a15- o15"; got != want {
		t.Errorf("answers between the change and what is hidden: got %s, want %s", got, want)
	}
	if got, want := d.shown(cut(changed, scope, "o12")), "u19 a11- o11 a12- - sum a14- o14 a15- o15"; got != want {
		t.Errorf("and another change: got %s, want %s", got, want)
	}
	if got, want := d.shown(cut(sealed("u1 a1 o1 a2 o2 a3 o3 a4 o4"), scope, "o1")), "u1 sum a2 o2 a3 o3 a4 o4"; got != want {
		t.Errorf("a hidden result cut: got %s, want %s", got, want)
	}
}

// TestPreparedSummaryPrecedesFirstHiddenMessage: the summary of a prepared condensation is shown before the first hidden message, even if an
// earlier condensation hides that.
func TestPreparedSummaryPrecedesFirstHiddenMessage(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	d.condensed(query(scope, "u1 a1 o1 u2 g2"), "early", session.Range{From: 2, To: 4})
	q := query(scope, "u1 a1 o1 u2 g2 a3 o3 a4 o4 u5")
	res := d.send(d.registry, q)
	view := projected(t, d, &res, q)
	must(t, d.registry.Prepare(t.Context(), &res, &view, session.Condensation{
		Prefix: 7, Hash: q.History.Chain[7], Forgotten: []session.Range{{From: 6, To: 8}}, Offset: 2, Summary: "late",
	}))
	for _, words := range []string{"u1 a1 o1 u2 g2 a3 o3 a4 o4 u5", "u9 a1 o1 u2 g2 a3 o3 a4 o4 u5"} {
		q := query(scope, words)
		res := d.send(d.another(), q)
		view := projected(t, d, &res, q)
		c, err := d.another().Prepared(t.Context(), &res, &view)
		if err != nil || len(view.Applied) != 1 || c.Offset != 2 {
			t.Errorf("%s: the summary is at %d, after %d condensations: %v", words, c.Offset, len(view.Applied), err)
		}
	}
}

// TestPreparedCondensationAppliesAfterResultsAreCut: a prepared condensation applies although the client has cut a result that it hides and has
// sent the cut result before.
func TestPreparedCondensationAppliesAfterResultsAreCut(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	q := query(scope, "u1 a1 o1 a2 o2 a3 o3")
	res := d.send(d.registry, q)
	view := projected(t, d, &res, q)
	must(t, d.registry.Prepare(t.Context(), &res, &view, session.Condensation{
		Prefix: 3, Hash: q.History.Chain[3], Forgotten: []session.Range{{From: 2, To: 4}}, Offset: 2, Summary: "late",
	}))
	for _, words := range []string{"u8 a1 o1 a2 o2 a3 o3 a4 o4", "u9 a1 o1 a2 o2 a3 o3 a4 o4 a5 o5"} {
		q := cut(query(scope, words), scope, "o1")
		res := d.send(d.another(), q)
		view := projected(t, d, &res, q)
		if _, err := d.another().Prepared(t.Context(), &res, &view); err != nil {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// TestTrimsAreCarriedOver: a trimmed result that the client has shortened since is recognised by its call if that has a unique id, even if
// the result is the last message.
func TestTrimsAreCarriedOver(t *testing.T) {
	for name, c := range map[string]struct {
		words, later, cut string
		trims             int
	}{
		"unchanged":            {"u1 a1 o1 g1", "u9 a1 o1 g1", "", 1},
		"unchanged, short id":  {"u1 c1 r1 g1", "u9 c1 r1 g1", "", 1},
		"shortened":            {"u1 a1 o1 g1", "u9 a1 o1 g1", "o1", 1},
		"shortened, short id":  {"u1 c1 r1 g1", "u9 c1 r1 g1", "r1", 0},
		"the last message":     {"u1 a1 o1", "u9 a1 o1", "", 1},
		"another call's":       {"u1 a1 o1 g1", "u9 a2 o2 g1", "", 0},
		"one that is not sent": {"u1 a1 o1", "u9 a1", "", 0},
	} {
		d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
		d.send(d.registry, query(scope, "u0 g0")) // the first thread of a session leaves no traces of its answers
		q := query(scope, c.words)
		res := d.send(d.registry, q)
		view := session.Project(q.History, nil)
		_, err := d.registry.Condense(t.Context(), &res, &view, session.Condensation{
			Prefix: 3, Hash: q.History.Chain[3], Trims: []session.Trim{{Pos: 3, Head: 1}}, Reason: session.ReasonArrival,
		})
		must(t, err)
		later := cut(query(scope, c.later), scope, c.cut)
		again := d.send(d.another(), later)
		trims := 0
		for _, item := range projected(t, d, &again, later).Items {
			if item.Trim != nil {
				trims++
			}
		}
		if trims != c.trims {
			t.Errorf("%s: %d results are trimmed, want %d", name, trims, c.trims)
		}
	}
}
