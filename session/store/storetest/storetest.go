// Package storetest tests implementations of store.Store.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Life returns how long a record of a store will be kept.
type Life func(t *testing.T, s store.Store, key store.Key) time.Duration

// Run tests the stores that open returns. Each starts empty, has a TTL of an hour, and is closed by Run.
func Run(t *testing.T, open func(t *testing.T) store.Store, life Life) {
	all := reflect.ValueOf(suite{open, life})
	for i := range all.NumMethod() {
		t.Run(all.Type().Method(i).Name, all.Method(i).Interface().(func(*testing.T)))
	}
}

// suite holds the tests: each exported method is one.
type suite struct {
	open func(t *testing.T) store.Store
	life Life
}

// tried is a store under test.
type tried struct {
	*testing.T
	store.Store
}

func (s suite) fresh(t *testing.T) tried {
	t.Helper()
	opened := s.open(t)
	t.Cleanup(func() { _ = opened.Close() })
	return tried{t, opened}
}

// key names a record with the logs a and b.
func key(group string) store.Key { return store.Key{Kind: 'z', Group: group, Logs: "ab"} }

func set(pairs ...string) (fields []store.Field) {
	for pair := range slices.Chunk(pairs, 2) {
		fields = append(fields, store.Field{Name: pair[0], Value: pair[1]})
	}
	return fields
}

func is(field, value string) store.Cond {
	return store.Cond{Field: field, Test: store.Is, Value: value}
}

// entry returns the key of an index entry.
func entry(name string) store.EntryKey {
	return store.EntryKey("y" + name + strings.Repeat(".", store.HashLen-len(name)))
}

func (s tried) commit(c store.Commit) store.Result {
	s.Helper()
	result, err := s.Commit(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	return result
}

// failed commits parts, whose conditions must hold for all but the one with that number, or for all if it is -1.
func (s tried) failed(want int, parts ...store.Part) store.Result {
	s.Helper()
	result := s.commit(store.Commit{Parts: parts})
	if result.Failed != want {
		s.Fatalf("part %d failed, want %d", result.Failed, want)
	}
	return result
}

func (s tried) read(q store.Query) store.Found {
	s.Helper()
	found, err := s.Read(s.Context(), q)
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// fields checks some fields of a record.
func (s tried) fields(group string, want ...string) {
	s.Helper()
	for pair := range slices.Chunk(want, 2) {
		got := s.read(store.Query{Records: []store.Select{{Key: key(group), Fields: []string{pair[0]}}}}).Records[0]
		if got.Fields[pair[0]] != pair[1] || got.Exists() != (pair[1] != "") {
			s.Fatalf("field %s of %s is %q, want %q", pair[0], group, got.Fields[pair[0]], pair[1])
		}
	}
}

// entries checks index entries.
func (s tried) entries(want ...string) {
	s.Helper()
	var q store.Query
	var values []string
	for pair := range slices.Chunk(want, 2) {
		q.Entries, values = append(q.Entries, entry(pair[0])), append(values, pair[1])
	}
	if got := s.read(q).Entries; !slices.Equal(got, values) {
		s.Fatalf("entries %q, want %q", got, values)
	}
}

func (s tried) log(log byte, at uint64, limit, bytes int) store.Page {
	s.Helper()
	page, err := s.Log(s.Context(), store.LogQuery{Key: key("a"), Log: log, At: at, Limit: limit, Bytes: bytes})
	if err != nil {
		s.Fatal(err)
	}
	return page
}

// Fields: parts set, delete and count fields, and values are any bytes.
func (s suite) Fields(t *testing.T) {
	st := s.fresh(t)
	st.failed(-1, store.Part{
		Key: key("a"), Set: set("one", "1", "bytes", "\x00\xff%{}\r\n", "gone", "x", "none", ""), New: set("first", "A"),
		Add: []store.Count{{Name: "sum", N: 5}},
	})
	got := st.failed(-1, store.Part{
		Key: key("a"), Set: set("gone", "", "one", "2"), New: set("first", "B", "second", "C"),
		Add: []store.Count{{Name: "sum", N: -7}, {Name: "large", N: math.MaxInt64}},
	})
	st.fields("a", "one", "2", "bytes", "\x00\xff%{}\r\n", "gone", "", "none", "", "first", "A", "second", "C", "sum", "-2")
	st.fields("a", "large", fmt.Sprint(math.MaxInt64))
	if !reflect.DeepEqual(got.Sums, [][]int64{{-2, math.MaxInt64}}) {
		t.Errorf("sums %v", got.Sums)
	}
	all := st.read(store.Query{Records: []store.Select{{Key: key("a")}, {Key: key("b")}}}).Records
	if len(all[0].Fields) != 6 || all[1].Exists() {
		t.Errorf("all of it: %q", all)
	}
	st.failed(-1, store.Part{Key: key("a"), Set: set("only", "this"), Clear: true})
	st.fields("a", "only", "this", "one", "", "sum", "")
	if all := st.read(store.Query{Records: []store.Select{{Key: key("a")}}}).Records[0]; len(all.Fields) != 1 {
		t.Errorf("cleared: %q", all)
	}
	st.failed(-1, store.Part{Key: key("a"), Clear: true})
	st.fields("a", "only", "")
}

// Conditions: a commit is applied completely or not at all.
func (s suite) Conditions(t *testing.T) {
	st := s.fresh(t)
	put := set("x", "1")
	st.failed(0, store.Part{Key: key("a"), If: []store.Cond{is("x", "1")}, Set: put})
	st.failed(0, store.Part{Key: key("a"), If: []store.Cond{{Field: "x", Test: store.Exists}}, Set: put})
	st.fields("a", "x", "")
	st.failed(-1, store.Part{Key: key("a"), If: []store.Cond{is("x", "")}, Set: put})
	st.failed(0, store.Part{Key: key("a"), If: []store.Cond{is("x", "")}, Set: set("x", "2")})
	below := func(limit int64) store.Part {
		return store.Part{Key: key("a"), If: []store.Cond{{Field: "x", Other: "n", Test: store.Below, Limit: limit}}, Add: []store.Count{{Name: "n", N: 1}}}
	}
	st.failed(0, below(1))
	st.failed(-1, below(2))
	st.failed(0, below(2))
	named := store.Key{Kind: 'z', Group: "a", Name: "named"}
	st.failed(1, store.Part{Key: key("a"), Set: set("x", "3")}, store.Part{Key: named, If: []store.Cond{is("y", "1")}, Set: set("y", "2")})
	st.fields("a", "x", "1", "n", "1")
	st.failed(-1, store.Part{Key: key("a"), Set: set("x", "3")}, store.Part{Key: named, If: []store.Cond{is("y", "")}, Set: set("y", "2")})
	st.fields("a", "x", "3", "y", "")
	// Whether the first part is applied depends on where the other group is kept.
	guard := store.Part{Key: key("b"), If: []store.Cond{{Field: "x", Test: store.Exists}}, Guards: true}
	got := st.commit(store.Commit{
		Parts:   []store.Part{{Key: key("a"), Set: set("x", "4")}, guard},
		Entries: []store.Entry{{Key: entry("e"), Value: "A1"}}, Owner: "A",
	})
	if got.Failed != 1 || got.Applied && st.Late() == 0 {
		t.Errorf("got %+v", got)
	}
	st.entries("e", "")
}

// Logs: entries are numbered, also in fields, and read from either end.
func (s suite) Logs(t *testing.T) {
	st := s.fresh(t)
	if _, err := st.Log(t.Context(), store.LogQuery{Key: key("a"), Log: 'a', At: 1, Limit: 1, Bytes: 1}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the log of no record: %v", err)
	}
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("entry %02d", i+1))
	}
	st.failed(-1, store.Part{Key: key("a"), Log: []store.Append{{Log: 'a', Entries: want[:38]}, {Log: 'b', Entries: []string{"other"}}}})
	got := st.failed(-1, store.Part{
		Key: key("a"), Set: set("list", ""), Log: []store.Append{{Log: 'a', Entries: want[38:]}}, Listed: set("list", "x"), Named: set("at", "y"),
	})
	if got.End != 40 {
		t.Errorf("the last entry is %d", got.End)
	}
	st.failed(-1, store.Part{Key: key("a"), Log: []store.Append{{Log: 'b', Entries: []string{"more"}}}, Listed: set("list", "z")})
	st.fields("a", "list", "40:x2:z", "at40", "y", store.End('a'), "40", store.End('b'), "2")
	reversed := slices.Clone(want)
	slices.Reverse(reversed)
	for _, c := range []struct {
		at    uint64
		limit int
		bytes int
		first uint64
		want  []string
	}{
		{0, 3, 99, 1, want[:3]}, {1, 100, 1 << 20, 1, want}, {39, 5, 99, 39, want[38:]}, {5, 100, 16, 5, want[4:6]}, {5, 100, 17, 5, want[4:7]},
		{40, -100, 1 << 20, 40, reversed}, {99, -2, 99, 40, reversed[:2]}, {3, -9, 99, 3, reversed[37:]}, {41, 1, 99, 41, nil}, {0, -1, 99, 0, nil},
	} {
		page := st.log('a', c.at, c.limit, c.bytes)
		if !slices.Equal(page.Entries, c.want) || page.End != 40 || len(c.want) > 0 && page.First != c.first {
			t.Errorf("from %d %d entries of %d bytes: %+v", c.at, c.limit, c.bytes, page)
		}
	}
	st.failed(-1, store.Part{Key: key("a"), Trim: []store.Trim{{Log: 'a', Keep: 3}}})
	if page := st.log('a', 1, 9, 99); !slices.Equal(page.Entries, want[37:]) || page.First != 38 || page.End != 40 {
		t.Errorf("trimmed: %+v", page)
	}
	newest := st.read(store.Query{Records: []store.Select{{Key: key("a"), Fields: []string{"list"}, Log: 'b', Newest: 9}, {Key: key("a"), Fields: []string{}, Log: 'a', Newest: 2}}})
	if !slices.Equal(newest.Records[0].Newest, []string{"other", "more"}) || !slices.Equal(newest.Records[1].Newest, want[38:]) {
		t.Errorf("newest: %q", newest)
	}
}

// Entries: a record keeps its newest recent entries, and no commit deletes those of another owner.
func (s suite) Entries(t *testing.T) {
	st := s.fresh(t)
	put := func(owner string, early bool, names ...string) {
		t.Helper()
		c := store.Commit{
			Parts: []store.Part{{Key: key(owner), Set: set("v", "1")}}, Owner: owner, Most: 3, RecentKind: 'y', Early: early,
			Entries: []store.Entry{{Key: entry("kept" + owner), Value: owner + "0"}},
		}
		for _, name := range names {
			c.Entries = append(c.Entries, store.Entry{Key: entry(name), Value: owner + name, Recent: true, First: name == "first"})
		}
		if got := st.commit(c); !got.OK() {
			t.Fatal("it failed")
		}
	}
	put("a", false, "1", "2", "first")
	put("b", false, "2", "first")
	st.entries("1", "a1", "2", "b2", "first", "afirst", "3", "")
	put("a", false, "1", "3", "4") // 2 and first fall out, of which b has one
	st.entries("1", "a1", "2", "b2", "first", "", "3", "a3", "4", "a4", "kepta", "a0")
	for i := range 9 {
		put("a", true, fmt.Sprint("e", i), fmt.Sprint("f", i))
	}
	put("a", false, "last")
	st.entries("1", "", "e7", "", "f7", "", "e8", "ae8", "f8", "af8", "last", "alast", "kepta", "a0")
	st.commit(store.Commit{Parts: []store.Part{{Key: key("a")}}, Drop: []store.EntryKey{entry("last"), entry("2"), entry("none")}, Owner: "a"})
	st.entries("last", "", "2", "b2")
	for _, early := range []bool{false, true} {
		got := st.commit(store.Commit{
			Parts: []store.Part{{Key: key("a"), If: []store.Cond{is("v", "2")}}}, Early: early, Owner: "a",
			Entries: []store.Entry{{Key: entry("not"), Value: "anot"}},
		})
		if got.OK() {
			t.Error("the condition holds")
		}
		st.entries("not", "")
	}
}

// Return: a commit returns fields as they are after it.
func (s suite) Return(t *testing.T) {
	st := s.fresh(t)
	st.failed(-1, store.Part{Key: key("a"), Set: set("old", "1", "gone", "1")})
	got := st.commit(store.Commit{Parts: []store.Part{{Key: key("a"), Set: set("new", "2", "gone", "")}}, Return: []string{"old", "new", "gone", "none"}})
	if !reflect.DeepEqual(got.Fields, map[string]string{"old": "1", "new": "2"}) {
		t.Errorf("fields %q", got.Fields)
	}
}

// Lives: a commit extends the life of a record, to what it says itself, unless it never does.
func (s suite) Lives(t *testing.T) {
	st, n := s.fresh(t), 0
	const day = 24 * time.Hour
	f := func(p store.Part, least, most time.Duration) {
		t.Helper()
		n++
		p.Key, p.Set = key("a"), append(p.Set, set("x", fmt.Sprint(n))...)
		st.failed(-1, p)
		if got := s.life(t, st.Store, p.Key); got <= least || got > most {
			t.Errorf("commit %d: it is kept for another %v, want %v to %v", n, got, least, most)
		}
	}
	f(store.Part{Renew: store.Never, Keep: 2 * day}, day, 2*day)
	f(store.Part{Renew: store.Never}, day, 2*day)
	f(store.Part{Renew: store.Never, Keep: 9 * day}, day, 2*day)
	f(store.Part{Renew: store.Never, If: []store.Cond{is("none", "")}, New: set("new", "1")}, day, 2*day)
	f(store.Part{Renew: store.Never, Log: []store.Append{{Log: 'a', Entries: []string{"e"}}}}, day, 2*day)
	f(store.Part{Keep: 9 * day}, 8*day, 9*day)
	f(store.Part{Renew: store.Now}, 59*time.Minute, 2*time.Hour)
	// Another group does not decide about it either.
	st.failed(-1, store.Part{Key: key("b"), Set: set("x", "1")}, store.Part{Key: key("a"), Set: set("x", "0"), Renew: store.Never, Keep: day})
	f(store.Part{Renew: store.Never}, 59*time.Minute, 2*time.Hour)
}

// Scan: a listing has each record of a kind once, and goes on behind any of them.
func (s suite) Scan(t *testing.T) {
	st, want := s.fresh(t), map[string]bool{}
	for _, group := range []string{"", "a", "{b}", "%", "\x00\xff", "c*?[d]"} {
		st.failed(-1, store.Part{Key: store.Key{Kind: 's', Group: group, Logs: "u"}, Set: set("x", "1"), Log: []store.Append{{Log: 'u', Entries: []string{"e"}}}})
		want[group] = true
	}
	st.failed(-1, store.Part{Key: key("other kind"), Set: set("x", "1")})
	for _, single := range []bool{false, true} {
		got, cursor := map[string]bool{}, ""
		for pages := 0; pages < 100_000; pages++ {
			page, err := st.Scan(t.Context(), 's', cursor)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range page.Keys {
				if got[k.Group] {
					t.Errorf("%q is listed twice", k.Group)
				}
				got[k.Group] = true
				if cursor = page.Cursors[i]; single {
					break
				}
			}
			if !single || len(page.Keys) == 0 {
				cursor = page.Next
				if cursor == "" {
					break
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	}
	if _, err := st.Scan(t.Context(), 's', "!"); !errors.Is(err, session.ErrCursor) {
		t.Errorf("an invalid cursor: %v", err)
	}
}

// Races: of concurrent commits with the same condition one is applied, and no count is lost.
func (s suite) Races(t *testing.T) {
	const n = 24
	st := s.fresh(t)
	var all sync.WaitGroup
	var won atomic.Int32
	for i := range n {
		all.Go(func() {
			part := store.Part{Key: key("a"), If: []store.Cond{is("x", "")}, Set: set("x", fmt.Sprint(i))}
			result, err := st.Commit(context.Background(), store.Commit{Parts: []store.Part{part}})
			if err == nil && result.OK() {
				won.Add(1)
			}
			count := store.Part{Key: key("a"), Add: []store.Count{{Name: "n", N: 1}}, Log: []store.Append{{Log: 'a', Entries: []string{"e"}}}}
			_, counted := st.Commit(context.Background(), store.Commit{Parts: []store.Part{count}})
			if err = errors.Join(err, counted); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d were applied", won.Load())
	}
	st.fields("a", "n", fmt.Sprint(n), store.End('a'), fmt.Sprint(n))
}

// Lock: a commit may release the lock of a record.
func (s suite) Lock(t *testing.T) {
	st := s.fresh(t)
	lease, err := st.Store.Lock(t.Context(), key("a"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Store.Lock(t.Context(), key("a"), time.Hour); !errors.Is(err, session.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	st.failed(-1, store.Part{Key: key("a"), Clear: true, Unlock: true})
	other, err := st.Store.Lock(t.Context(), key("a"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
	if err := lease.Renew(t.Context()); !errors.Is(err, session.ErrLocked) {
		t.Errorf("a lock that another has was renewed: %v", err)
	}
	other.Release()
}
