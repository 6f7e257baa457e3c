package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

const marker = "the treasure is at 1234 Elm Street"

// under returns a Content that encrypts under the active one of some keys, each derived from its id.
func under(t testing.TB, active string, ids ...string) codec.Content {
	t.Helper()
	all := map[string][]byte{}
	for _, id := range ids {
		all[id] = bytes.Repeat([]byte(id), 32)[:32]
	}
	keys, err := seal.New(active, all)
	if err != nil {
		t.Fatal(err)
	}
	return codec.NewContent(true, keys)
}

func said(text string) session.Event {
	return session.Event{Kind: session.User, Pos: 3, Digest: session.Hash{1}, Chain: session.Hash{2}, Tokens: 9,
		Time: time.Unix(5, 6).UTC(), Payload: []byte(text)}
}

func summed(thread session.ThreadID) session.Condensation {
	return session.Condensation{ID: session.CondensationID{Thread: thread, Seq: 7}, Prefix: 4, Hash: session.Hash{3}, Summary: marker}
}

func TestSealedRecords(t *testing.T) {
	clear, sealed := content, under(t, "k", "k")
	property.Check(t, func(t *rapid.T) {
		e := said(texts.Draw(t, "payload"))
		if len(e.Payload) == 0 {
			e.Payload = nil
		}
		got, err := parseEvent(sealed, "t", sealed.Event("t", e), 0)
		same(t, "encrypted", e.Payload != nil, got.Encrypted, err)
		got.Encrypted = false
		same(t, "event", e, got, err)
		got, err = parseEvent(sealed, "t", clear.Event("t", e), 0)
		same(t, "event of before", e, got, err)
		c := drawCondensation(t)
		c.Summary = texts.Draw(t, "summary")
		text, err := sealed.ParseText(sealed.Text(c), c)
		same(t, "summary", c.Summary, text, err)
		text, err = sealed.ParseText(clear.Text(c), c)
		same(t, "summary of before", c.Summary, text, err)
	})
	long := strings.Repeat(marker+" ", 100)
	for _, b := range [][]byte{sealed.Event("t", said(marker)), sealed.Event("t", said(long)), sealed.Text(summed("t"))} {
		if bytes.Contains(b, []byte("Elm")) {
			t.Errorf("%q holds the content", b)
		}
	}
	if n := len(sealed.Event("t", said(long))); n > len(long)/4 {
		t.Errorf("%d bytes became %d: it is not compressed first", len(long), n)
	}
	if !bytes.Contains(clear.Event("t", said(marker)), []byte(marker)) {
		t.Error("without a key the record does not hold the content: this test sees nothing")
	}
}

// TestSealedRecordsAreBound changes every byte of a record, and moves records to where they do not belong.
func TestSealedRecordsAreBound(t *testing.T) {
	o := under(t, "k", "k")
	event := o.Event("a", said(marker))
	for i := range event {
		changed := bytes.Clone(event)
		changed[i] ^= 1
		if e, err := parseEvent(o, "a", changed, 1); err == nil && len(e.Payload) > 0 {
			t.Errorf("byte %d changed: %+v", i, e)
		}
	}
	if _, err := parseEvent(o, "b", event, 1); !errors.Is(err, session.ErrUnreadable) || !errors.Is(err, seal.ErrTampered) {
		t.Errorf("in another thread: %v", err)
	}
	sealed := event[len(codec.NewContent(false, nil).Event("a", said(marker))):] // everything after the fields in clear
	for what, change := range map[string]func(*session.Event){
		"kind":     func(e *session.Event) { e.Kind = session.Agent },
		"position": func(e *session.Event) { e.Pos++ },
		"after":    func(e *session.Event) { e.After++ },
		"digest":   func(e *session.Event) { e.Digest[0]++ },
		"chain":    func(e *session.Event) { e.Chain[0]++ },
		"tokens":   func(e *session.Event) { e.Tokens++ },
		"time":     func(e *session.Event) { e.Time = e.Time.Add(1) },
	} {
		other := said(marker)
		change(&other)
		moved := o.Event("a", other)
		copy(moved[len(moved)-len(sealed):], sealed)
		if e, err := parseEvent(o, "a", moved, 1); !errors.Is(err, session.ErrUnreadable) {
			t.Errorf("the payload of an event with another %s: %+v, %v", what, e, err)
		}
	}
	here := summed("a")
	text := o.Text(here)
	for what, change := range map[string]func(*session.Condensation){
		"another thread":      func(c *session.Condensation) { c.ID.Thread = "b" },
		"another prefix":      func(c *session.Condensation) { c.Prefix++ },
		"another history":     func(c *session.Condensation) { c.Hash[0]++ },
		"another base":        func(c *session.Condensation) { c.Base.Seq++ },
		"another time":        func(c *session.Condensation) { c.Time = c.Time.Add(1) },
		"no condensation":     func(c *session.Condensation) { *c = session.Condensation{} },
		"a payload's as text": nil,
	} {
		there, text := here, text
		if change == nil {
			change = func(*session.Condensation) {
				text = append([]byte{0x32, byte(len(text) - 2)}, event[len(event)-len(text)+2:]...)
			}
		}
		change(&there)
		if got, err := o.ParseText(text, there); !errors.Is(err, session.ErrUnreadable) || got != "" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

func TestSealedUnderOlderKeys(t *testing.T) {
	event, text := under(t, "old", "old").Event("t", said(marker)), under(t, "old", "old").Text(summed("t"))
	rotated := under(t, "new", "old", "new")
	if e, err := parseEvent(rotated, "t", event, 1); string(e.Payload) != marker || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if got, err := rotated.ParseText(text, summed("t")); got != marker || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, gone := range []codec.Content{under(t, "new", "new"), content} {
		e, err := parseEvent(gone, "t", event, 1)
		if e.Payload != nil || e.Pos != 3 || e.Tokens != 9 || err != nil {
			t.Errorf("an event whose key is gone: %+v, %v", e, err)
		}
		var unknown *seal.KeyError
		if got, err := gone.ParseText(text, summed("t")); got != "" || !errors.Is(err, session.ErrUnreadable) || !errors.As(err, &unknown) || unknown.ID != "old" {
			t.Errorf("a summary whose key is gone: %q, %v", got, err)
		}
	}
}

// TestRecordsThatInflate reads small records that claim to be, or really are, larger than anything a store writes.
func TestRecordsThatInflate(t *testing.T) {
	// A zstd frame with the dictionary, and 65 MiB in 520 blocks of one repeated byte each.
	frame := slices.Concat([]byte{2, 0x28, 0xb5, 0x2f, 0xfd, 0xa1, 1, 0, 0, 0x10, 4}, bytes.Repeat([]byte{2, 0, 0x10, 'a'}, 519), []byte{3, 0, 0x10, 'a'})
	bomb := append(binary.AppendUvarint([]byte{0x0a}, uint64(len(frame))), frame...)
	if _, err := content.ParseText(content.Text(session.Condensation{Summary: strings.Repeat("a", 100)}), session.Condensation{}); err != nil {
		t.Fatal(err) // the decoder is allocated
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := content.ParseText(bomb, session.Condensation{}); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	over := said(strings.Repeat("a", 64<<20+1)) // not compressed: what is decoded is never larger than its record
	if b := content.Event("t", over); len(b) < len(over.Payload) {
		t.Errorf("%d bytes were compressed to %d, and could not be read", len(over.Payload), len(b))
	}
}

// TestSealedNamesAreBound: a reference to another thread's entry is sealed too, and bound to everything else in its own entry.
func TestSealedNamesAreBound(t *testing.T) {
	o := under(t, "k", "k")
	events := []session.Event{said(""), said("")}
	events[0].Payload, events[0].Ref = nil, session.EntryID{Thread: "holder", Seq: 7}
	events[1] = events[0]
	events[1].Pos, events[1].Ref.Seq = events[0].Pos+1, 8
	events[1].Chain = session.Next(events[0].Chain, events[1].Digest)
	entries := o.Events("t", events)
	if len(entries) != 1 || bytes.Contains(entries[0], []byte("holder")) {
		t.Fatalf("%d entries: %q", len(entries), entries)
	}
	got, err := o.ParseEvents("t", entries[0], 0)
	for i := range events {
		events[i].Encrypted = true
	}
	if err != nil || !reflect.DeepEqual(got, events) {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range entries[0] {
		changed := bytes.Clone(entries[0])
		changed[i] ^= 1
		all, err := o.ParseEvents("t", changed, 0)
		for _, e := range all {
			if err == nil && e.Ref.Thread != "" && e.Encrypted {
				t.Errorf("byte %d changed: %+v", i, e)
			}
		}
	}
	if _, err := o.ParseEvents("other", entries[0], 0); !errors.Is(err, session.ErrUnreadable) {
		t.Errorf("in another thread: %v", err)
	}
	gone, err := under(t, "new", "new").ParseEvents("t", entries[0], 0)
	if err != nil || len(gone) != 2 || gone[1].Ref != (session.EntryID{}) || gone[1].Digest != events[1].Digest {
		t.Errorf("the key is gone: %+v, %v", gone, err)
	}
}

// TestForgedNamesAreNotEncrypted: a reference that was not sealed does not count as encrypted, in whichever field of an entry it is.
func TestForgedNamesAreNotEncrypted(t *testing.T) {
	o := under(t, "k", "k")
	victim := session.EntryID{Thread: "victim", Seq: 7}
	run := func(e session.Event) []byte { // an entry in clear, with a run, that refers to victim
		e.Payload, e.Ref = nil, victim
		next := e
		next.Pos, next.Ref.Seq, next.Chain = e.Pos+1, 8, session.Next(e.Chain, e.Digest)
		return content.Events("t", []session.Event{e, next})[0]
	}
	bare := said("")
	bare.Payload = nil
	name := content.Text(session.Condensation{Summary: "\x0a\x06victim\x10\x07"})
	whole := run(said(""))
	for what, entry := range map[string][]byte{
		"in clear where the sealed one belongs": append(append(content.Event("t", bare), 0x62, byte(len(name))), name...),
		"next to a sealed payload":              append(o.Event("t", said(marker)), whole[len(content.Event("t", bare)):]...),
		"next to a sealed name":                 append(o.Events("t", []session.Event{{Pos: 3, Kind: session.User, Ref: victim}})[0], whole[len(content.Event("t", bare)):]...),
	} {
		all, err := o.ParseEvents("t", entry, 0)
		for _, e := range all {
			if err == nil && e.Encrypted && e.Ref.Thread != "" {
				t.Errorf("%s: %+v", what, e)
			}
		}
	}
}
