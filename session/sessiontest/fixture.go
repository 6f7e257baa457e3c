package sessiontest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// clock is the time of the first record in each test.
var clock = time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)

// hash returns a hash that is unique for its arguments.
func hash(name ...any) session.Hash { return sha256.Sum256([]byte(fmt.Sprintln(name...))) }

// batch returns n messages to append to thread id, which is at position at.
func batch(id session.ThreadID, at, n int) session.Batch {
	b := session.Batch{
		Thread: session.Thread{
			ID: id, Session: session.SessionID("s-" + id), Tenant: "acme", Purpose: session.PurposeMain, Dialect: "messages",
			Len: at + n, Head: hash(id, at+n), System: hash("system"),
			Created: clock, Seen: clock.Add(time.Duration(at+n) * time.Second),
		},
		Key: "key-" + string(id), At: at,
	}
	for pos := at + 1; pos <= at+n; pos++ {
		b.Events = append(b.Events, session.Event{
			Pos: pos, Kind: session.User, Digest: hash("message", pos), Chain: hash(id, pos), Tokens: 10 + pos,
			Time: clock.Add(time.Duration(pos) * time.Second), Payload: fmt.Appendf(nil, `{"role":"user","content":"%s %d"}`, id, pos),
		})
		b.Places = append(b.Places, session.IndexEntry{Hash: hash(id, pos), Place: place(id, pos)})
	}
	return b
}

// fork returns n messages that begin thread id, a fork of parent at position at.
func fork(parent session.ThreadID, at int, id session.ThreadID, n int) session.Batch {
	b := batch(id, at, n)
	b.Thread.Parent, b.Thread.ForkAt = parent, at
	return b
}

// sharing returns n messages that begin thread id and whose content is stored in the first n entries of holder's log.
func sharing(id, holder session.ThreadID, n int) session.Batch {
	b := batch(id, 0, n)
	b.Thread.Session, b.Thread.Shares = session.SessionID("s-"+holder), []session.ThreadID{holder}
	chain := hash(id, 0)
	for i := range b.Events {
		e := &b.Events[i]
		chain = session.Next(chain, e.Digest)
		e.Chain, e.Time, e.Payload, e.Ref = chain, clock, nil, session.EntryID{Thread: holder, Seq: uint64(i) + 1}
		b.Places[i].Hash = chain
	}
	return b
}

func place(id session.ThreadID, pos int) session.Place {
	return session.Place{Thread: id, Session: session.SessionID("s-" + id), Pos: pos, Tokens: 100 * pos, Encoding: "o200k_base"}
}

func condensation(prefix int) session.Condensation {
	return session.Condensation{
		Prefix: prefix, Hash: hash("prefix", prefix), Hidden: session.Hidden{Span: hash("span", prefix), Run: hash("run", prefix), Results: []session.Result{{Pos: 3, Sum: 60000, Size: 900}, {Pos: prefix}}},
		Forgotten:       []session.Range{{From: 2, To: 4}, {From: 6, To: prefix}},
		ForgottenTokens: 900, Summary: fmt.Sprintf("what was done up to %d", prefix), SummaryTokens: 40, Offset: 2, Stripped: prefix + 1,
		Reason: session.ReasonTokens, Condenser: "llm", Model: "small-model",
		Before: session.Size{Events: 12, Tokens: 1200}, After: session.Size{Events: 6, Tokens: 400},
		Time:   clock.Add(time.Hour),
		Making: session.Making{Cost: session.Cost{Calls: 2, Took: time.Second, Used: session.Usage{Input: 1000, Cached: 600, Output: 40}, Nano: 1 << 40, Unpriced: "m"}},
	}
}

// listed returns c as it appears in a thread's list: without the summary.
func listed(c session.Condensation) session.Condensation {
	c.Summary = ""
	return c
}

// logged returns b's events as they are read back if the first has number seq.
func logged(b session.Batch, seq uint64) []session.Event {
	all := slices.Clone(b.Events)
	for i := range all {
		all[i].Seq = seq + uint64(i)
	}
	return all
}

// tester is a testing.TB or a *rapid.T.
type tester interface {
	Context() context.Context
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func ctx(t tester) context.Context { return t.Context() }

func ok(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t tester, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// equal compares records. Times must be in UTC, as all stores return them.
func equal[T any](t tester, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// must returns the result of a call, which must succeed.
func must[T any](result T, err error) func(t tester) T {
	return func(t tester) T {
		t.Helper()
		ok(t, err)
		return result
	}
}

func second[T any](_ T, err error) error { return err }

func thread(t tester, s session.Backend, id session.ThreadID) session.Thread {
	t.Helper()
	return must(s.Thread(ctx(t), id))(t)
}

// events returns a thread's log, as it would be read from a store that does not encrypt.
func events(t tester, s session.Backend, id session.ThreadID) []session.Event {
	t.Helper()
	all := must(s.Events(ctx(t), id, 1, 100_000))(t)
	for i := range all {
		all[i].Encrypted = false
	}
	return all
}

func lookup(t tester, s session.Backend, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) session.Found {
	t.Helper()
	return must(s.Find(ctx(t), hashes, hint, traces...))(t)
}
