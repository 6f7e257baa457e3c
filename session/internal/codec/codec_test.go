package codec_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// content stores everything in clear.
var content = codec.NewContent(true, nil)

var (
	hashes = rapid.Custom(func(t *rapid.T) (h session.Hash) {
		copy(h[:], rapid.SliceOfN(rapid.Byte(), 0, len(h)).Draw(t, "hash"))
		return h
	})
	times = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-1<<33, 1<<33).Draw(t, "sec"), rapid.Int64Range(1, 999_999_999).Draw(t, "nsec")).UTC()
	})
	ids   = rapid.StringN(1, -1, 64)
	texts = rapid.OneOf(rapid.String(), rapid.Just("\x00\xff}{"), rapid.Just(strings.Repeat("water ", 300)))
)

func draw[T any](t *rapid.T, g *rapid.Generator[T]) T { return g.Draw(t, "") }

func drawCost(t *rapid.T) session.Cost {
	n := rapid.Int()
	return session.Cost{
		Calls: draw(t, n), Took: time.Duration(draw(t, rapid.Int64())), Used: session.Usage{Input: draw(t, n), Cached: draw(t, n), Output: draw(t, n)}, Nano: draw(t, rapid.Int64()), Unpriced: draw(t, texts),
	}
}

func drawCondensation(t *rapid.T) session.Condensation {
	n, s := rapid.Int(), texts
	c := session.Condensation{
		ID:     session.CondensationID{Thread: session.ThreadID(draw(t, s)), Seq: draw(t, rapid.Uint64())},
		Base:   session.CondensationID{Thread: session.ThreadID(draw(t, s)), Seq: draw(t, rapid.Uint64())},
		Prefix: draw(t, n), Hash: draw(t, hashes), Hidden: session.Hidden{Span: draw(t, hashes), Run: draw(t, hashes)},
		ForgottenTokens: draw(t, n), SummaryTokens: draw(t, n), Offset: draw(t, n), Stripped: draw(t, n), Changed: draw(t, n),
		Reason: session.Reason(draw(t, s)), Condenser: draw(t, s), Model: draw(t, s),
		Before: session.Size{Events: draw(t, n), Tokens: draw(t, n)}, After: session.Size{Events: draw(t, n), Tokens: draw(t, n)},
		Time:        draw(t, times),
		Provisional: draw(t, rapid.Bool()), Addition: session.Addition{Added: draw(t, n), Topics: draw(t, rapid.SliceOfN(s, 1, 3))},
		Making: session.Making{
			Request: draw(t, s), Cause: draw(t, s), Prompt: draw(t, s), Reused: drawCost(t).Used, Cost: drawCost(t),
		},
	}
	for range draw(t, rapid.IntRange(0, 3)) {
		c.Forgotten = append(c.Forgotten, session.Range{From: draw(t, n), To: draw(t, n)})
	}
	for range draw(t, rapid.IntRange(0, 3)) {
		trim := session.Trim{Pos: draw(t, n), Head: draw(t, n), Tail: draw(t, n), Tidy: rapid.Bool().Draw(t, "tidy")}
		for range rapid.IntRange(0, 2).Draw(t, "copies") {
			trim.Copies = append(trim.Copies, session.Copy{From: draw(t, n), To: draw(t, n), Source: draw(t, n), At: draw(t, n)})
		}
		c.Trims = append(c.Trims, trim)
	}
	return c
}

func same[T any](t *rapid.T, what string, want, got T, err error) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: %v\nwant %#v\ngot  %#v", what, err, want, got)
	}
}

func TestRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n, s := rapid.Int(), texts
		p := session.Place{Thread: session.ThreadID(draw(t, s)), Session: session.SessionID(draw(t, s)), Pos: draw(t, n), Tokens: draw(t, n), Encoding: draw(t, s)}
		like := rapid.SampledFrom([]session.Place{{}, p, {Thread: session.ThreadID(draw(t, s)), Session: p.Session, Pos: 1, Tokens: 2, Encoding: draw(t, s)}})
		place, err := codec.ParsePlace(codec.Place(p), draw(t, like))
		same(t, "place", p, place, err)

		th := session.Thread{
			ID: session.ThreadID(draw(t, ids)), Session: session.SessionID(draw(t, ids)), Tenant: draw(t, s), Purpose: session.Purpose(draw(t, s)),
			Origin: session.Origin{Parent: session.ThreadID(draw(t, s)), ForkAt: draw(t, n), Follows: session.ThreadID(draw(t, s)), Lost: draw(t, n)}, Len: draw(t, n), Head: draw(t, hashes), System: draw(t, hashes),
			Seq: draw(t, rapid.Uint64()), Created: draw(t, times), Seen: draw(t, times), Requested: draw(t, rapid.Uint64()),
		}
		thread, err := codec.ParseThread(codec.Thread(th))
		same(t, "thread", th, thread, err)

		ses := session.Session{ID: th.Session, Tenant: th.Tenant, Key: draw(t, s), Created: th.Created, Seen: th.Seen}
		for range draw(t, rapid.IntRange(0, 3)) {
			ses.Threads = append(ses.Threads, session.ThreadID(draw(t, s)))
		}
		back, err := codec.ParseSession(codec.Session(ses))
		same(t, "session", ses, back, err)

		var all []session.Condensation
		for range draw(t, rapid.IntRange(0, 3)) {
			all = append(all, drawCondensation(t))
		}
		list, err := codec.ParseList(codec.List(all))
		same(t, "condensations", all, list, err)

		text := draw(t, s)
		got, err := content.ParseText(content.Text(session.Condensation{Summary: text}), session.Condensation{})
		same(t, "text", text, got, err)
	})
}

func TestEventRoundTrip(t *testing.T) {
	payloads := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(texts, func(s string) []byte { return []byte(s) }))
	property.Check(t, func(t *rapid.T) {
		e := session.Event{
			Seq: draw(t, rapid.Uint64()), Pos: draw(t, rapid.Int()), Kind: session.Kind(draw(t, rapid.ByteMin(1))), Digest: draw(t, hashes),
			Chain: draw(t, hashes), Tokens: draw(t, rapid.Int()), Time: draw(t, times), Payload: draw(t, payloads),
		}
		if len(e.Payload) == 0 {
			e.Payload = nil
		}
		if e.Kind == session.System {
			e.Pos, e.After = 0, e.Pos
		}
		chains, err := codec.ChainsOf(content.Event("t", e))
		if e.Chain.IsZero() {
			same(t, "no chain of an event", nil, chains, err)
		} else {
			same(t, "chain of an event", []session.Hash{e.Chain}, chains, err)
		}
		got, err := parseEvent(content, "t", content.Event("t", e), e.Seq)
		same(t, "event", e, got, err)
		got, err = parseEvent(content, "t", codec.NewContent(false, nil).Event("t", e), e.Seq)
		e.Payload = nil
		same(t, "event without content", e, got, err)
	})
}

// parseEvent decodes an entry with one event.
func parseEvent(o codec.Content, thread session.ThreadID, b []byte, seq uint64) (session.Event, error) {
	all, err := o.ParseEvents(thread, b, seq)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("the entry has %d events", len(all))
	}
	if err != nil {
		return session.Event{}, err
	}
	return all[0], nil
}

// TestEventsRoundTrip: events come back as they were, whether they share entries or not.
func TestEventsRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		at, chain, seq := draw(t, times), draw(t, hashes), uint64(1)
		var events, got []session.Event
		for pos := range rapid.IntRange(1, 12).Draw(t, "events") {
			digest := draw(t, hashes)
			chain = session.Next(chain, digest)
			e := session.Event{Pos: pos + 1, Kind: session.Kind(draw(t, rapid.ByteMin(1))), Digest: digest, Chain: chain, Tokens: draw(t, rapid.Int()), Time: at}
			seq += draw(t, rapid.Uint64Range(0, 2))
			switch draw(t, rapid.IntRange(0, 9)) {
			case 0:
				e.Payload = []byte("new")
			case 1:
				e.Ref = session.EntryID{Thread: "other", Seq: seq}
			case 2:
				chain = draw(t, hashes)
			default:
				e.Ref = session.EntryID{Thread: "holder", Seq: seq}
			}
			events = append(events, e)
		}
		var chains []session.Hash
		for i, entry := range content.Events("t", events) {
			all, err := content.ParseEvents("t", entry, 0)
			more, failed := codec.ChainsOf(entry)
			if err != nil || failed != nil || len(all) == 0 {
				t.Fatalf("entry %d: %d events, %v, %v", i, len(all), err, failed)
			}
			got, chains = append(got, all...), append(chains, more...)
		}
		same(t, "events", events, got, nil)
		for i := range events {
			same(t, "chain", events[i].Chain, chains[i], nil)
		}
		for i, entry := range codec.NewContent(false, nil).Events("t", events) {
			e, err := parseEvent(codec.NewContent(false, nil), "t", entry, 0)
			events[i].Payload, events[i].Ref = nil, session.EntryID{}
			same(t, "event without content", events[i], e, err)
		}
	})
}

// TestReferencesShareEntries: messages that refer to successive entries of another log share an entry, up to 64 of them.
func TestReferencesShareEntries(t *testing.T) {
	const n = 200
	var events []session.Event
	chain := session.Hash{1}
	for i := range n {
		digest := session.Hash{2, byte(i)}
		chain = session.Next(chain, digest)
		events = append(events, session.Event{
			Pos: i + 1, Kind: session.User, Digest: digest, Chain: chain, Tokens: 400, Time: time.Unix(0, 5).UTC(),
			Ref: session.EntryID{Thread: "0123456789abcdef0123456789abcdef", Seq: uint64(i + 7)},
		})
	}
	entries := content.Events("t", events)
	if size := len(bytes.Join(entries, nil)); len(entries) != 4 || size > n*48 {
		t.Errorf("%d events take %d entries and %d bytes", n, len(entries), size)
	}
}

func TestPayloadIsCompressed(t *testing.T) {
	e := session.Event{Payload: bytes.Repeat([]byte("a line of a log, much like the one before\n"), 100)}
	if n := len(content.Event("t", e)); n > len(e.Payload)/4 {
		t.Errorf("%d bytes became %d", len(e.Payload), n)
	}
}

func TestSummaryTextIsNotInTheList(t *testing.T) {
	c := session.Condensation{Summary: "what was done"}
	got, err := codec.ParseList(codec.List([]session.Condensation{c}))
	if err != nil || len(got) != 1 || got[0].Summary != "" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCorrupt(t *testing.T) {
	place := codec.Place(session.Place{Thread: "t", Session: "s", Pos: 3})
	list := codec.List([]session.Condensation{{Prefix: 3}})
	event := content.Event("t", session.Event{Kind: session.User, Payload: []byte("hello")})
	parse := map[string]func([]byte) error{
		"place":   func(b []byte) error { _, err := codec.ParsePlace(b, session.Place{}); return err },
		"list":    func(b []byte) error { _, err := codec.ParseList(b); return err },
		"event":   func(b []byte) error { _, err := parseEvent(content, "t", b, 1); return err },
		"text":    func(b []byte) error { _, err := content.ParseText(b, session.Condensation{}); return err },
		"thread":  func(b []byte) error { _, err := codec.ParseThread(b); return err },
		"session": func(b []byte) error { _, err := codec.ParseSession(b); return err },
	}
	f := func(what string, b []byte) {
		t.Helper()
		if err := parse[what](b); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s %q: %v", what, b, err)
		}
	}
	f("place", nil)
	f("place", place[:len(place)-1])
	f("place", append(bytes.Clone(place), 0))
	f("place", append([]byte{1}, place[1:]...))
	f("list", list[:len(list)-1])
	f("list", []byte("1:x:"))
	f("list", []byte("18446744073709551616:0:"))
	f("list", []byte("1:18446744073709551615:"))
	f("list", []byte("1:3:\x2a\x01h")) // a hash of one byte
	f("event", nil)
	f("event", event[:8])
	f("event", append(bytes.Clone(event), 0))
	f("event", append([]byte{8, 0x80 | event[1], 2}, event[2:]...)) // 256 more than its kind
	f("event", []byte{8, 2, 0x42, 0})
	f("text", nil)
	f("text", []byte{0x0a, 1, 7})
	f("text", []byte{0x0a, 6, 1, 0xff, 0xff, 0xff, 0xff, 0xff})
	f("text", []byte{0x0a, 1, 0, 0x32, 1, 0}) // in clear and sealed
	f("thread", nil)
	f("thread", make([]byte, 100))
	f("thread", []byte{0x0a, 1, 't', 0x42, 1, 'h'})
	f("session", nil)
	f("session", []byte{0x22, 0xff, 0xff, 0xff, 0xff, 0x0f})
}

// TestLaterRecords: unknown fields are skipped.
func TestLaterRecords(t *testing.T) {
	b := append(codec.Thread(session.Thread{ID: "t", Len: 3}), 0xfa, 0x3f, 2, 'h', 'i') // field 1023
	if got, err := codec.ParseThread(b); err != nil || got.ID != "t" || got.Len != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzParse: no input may panic, and what parses encodes to the same bytes.
func FuzzParse(f *testing.F) {
	f.Add(codec.Place(session.Place{Thread: "t", Session: "s", Pos: 3, Tokens: 9, Encoding: "o200k_base"}))
	f.Add(codec.Thread(session.Thread{ID: "t", Len: 4, Created: time.Unix(1, 2)}))
	f.Add(codec.Session(session.Session{ID: "s", Threads: []session.ThreadID{"a", "b"}}))
	f.Add(content.Event("t", session.Event{Kind: session.User, Payload: bytes.Repeat([]byte("ab"), 200)}))
	f.Add(codec.List([]session.Condensation{{Forgotten: []session.Range{{From: 1, To: 3}}}}))
	f.Add(content.Text(session.Condensation{Summary: strings.Repeat("summary ", 30)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := codec.ParsePlace(b, session.Place{})
		if err == nil {
			again, err := codec.ParsePlace(codec.Place(p), session.Place{Thread: "t", Session: p.Session, Pos: 1})
			if err != nil || again != p {
				t.Errorf("place %v became %v, %v", p, again, err)
			}
		}
		if all, err := codec.ParseList(b); err == nil {
			again, err := codec.ParseList(codec.List(all))
			if err != nil || !reflect.DeepEqual(all, again) {
				t.Errorf("list %v became %v, %v", all, again, err)
			}
		}
		_, _ = codec.ParseThread(b)
		_, _ = codec.ParseSession(b)
		_, _ = parseEvent(content, "t", b, 1)
		_, _ = content.ParseText(b, session.Condensation{})
	})
}

// TestStoredPayloadsStayReadable: a payload that was compressed with the dictionary can be read, so neither the dictionary nor the form may
// change.
func TestStoredPayloadsStayReadable(t *testing.T) {
	const text = `{"role":"assistant","content":"Now let me look at the code.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"Bash","arguments":"{}"}}]}`
	stored, err := hex.DecodeString("0803100142380a360228b52ffd21019a5d01005863616c6c5f7d227d7d5d7d0a0070807365b04947817e49800f35b4930e18286604b77506c04181171308")
	if err != nil {
		t.Fatal(err)
	}
	e, err := parseEvent(content, "t", stored, 1)
	if err != nil || string(e.Payload) != text {
		t.Errorf("got %q, %v", e.Payload, err)
	}
	if now := content.Event("t", session.Event{Kind: session.Agent, Pos: 1, Payload: []byte(text)}); len(now) > len(text)/2 {
		t.Errorf("%d bytes take %d: %x", len(text), len(now), now)
	}
}
