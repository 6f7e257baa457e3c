package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

func sessionFields(s *session.Session) message {
	return message{
		(*string)(&s.ID), &s.Tenant, &s.Key, texts[session.ThreadID]{&s.Threads}, &s.Created, &s.Seen, // 1 to 6
		texts[string]{&s.Names}, &s.Requests, // 7, 8
	}
}

// Session encodes s.
func Session(s session.Session) []byte { return sessionFields(&s).encode() }

// ParseSession decodes a session, or returns ErrCorrupt.
func ParseSession(b []byte) (s session.Session, err error) {
	err = sessionFields(&s).decode(b)
	return valid(s, err, len(b) > 0)
}

// valid returns the record, or a zero one with err, or with ErrCorrupt if ok is false.
func valid[T any](record T, err error, ok bool) (T, error) {
	if err == nil && !ok {
		err = ErrCorrupt
	}
	if err != nil {
		return *new(T), err
	}
	return record, nil
}

func threadFields(t *session.Thread) message {
	return message{
		(*string)(&t.ID), (*string)(&t.Session), &t.Tenant, (*string)(&t.Purpose), (*string)(&t.Parent), // 1 to 5
		&t.ForkAt, &t.Len, &t.Head, &t.System, &t.Seq, // 6 to 10
		&t.Requested, &t.Created, &t.Seen, &t.Dialect, (*string)(&t.Follows), // 11 to 15
		&t.Lost, texts[session.ThreadID]{&t.Shares}, &t.Requests, (*string)(&t.Caller), // 16 to 19
	}
}

// Thread encodes t without its condensations, which List encodes.
func Thread(t session.Thread) []byte { return threadFields(&t).encode() }

// ParseThread decodes a thread without its condensations, or returns ErrCorrupt.
func ParseThread(b []byte) (t session.Thread, err error) {
	err = threadFields(&t).decode(b)
	return valid(t, err, t.ID != "")
}

// Savings encodes s.
func Savings(s session.Savings) []byte { return savingsFields(&s).encode() }

// ParseSavings decodes savings, or returns ErrCorrupt. An empty b gives zero savings.
func ParseSavings(b []byte) (s session.Savings, err error) {
	err = savingsFields(&s).decode(b)
	return valid(s, err, true)
}

func savingsFields(s *session.Savings) message {
	return message{
		&s.Tokens, &s.NotSent, &s.Rewritten, &s.Calls, usageFields(&s.Used), &s.Nano, &s.Unpriced, (*int64)(&s.Took), // 1 to 8
	}
}

func usageFields(u *session.Usage) message { return message{&u.Input, &u.Cached, &u.Output} }

// condensationFields leaves out the Seq, which is in the list of condensations, and the summary.
func condensationFields(c *session.Condensation) message {
	return message{
		(*string)(&c.ID.Thread), (*string)(&c.Base.Thread), &c.Base.Seq, &c.Prefix, &c.Hash, // 1 to 5
		messages[session.Range]{&c.Forgotten, rangeFields}, messages[session.Trim]{&c.Trims, trimFields}, // 6, 7
		&c.ForgottenTokens, &c.SummaryTokens, &c.Offset, &c.Stripped, &c.Provisional, // 8 to 12
		(*string)(&c.Reason), &c.Condenser, &c.Request, &c.Model, // 13 to 16
		message{&c.Before.Events, &c.Before.Tokens}, message{&c.After.Events, &c.After.Tokens}, usageFields(&c.Used), &c.Time, // 17 to 20
		&c.Hidden.Span, &c.Hidden.Run, &c.Cause, &c.Added, texts[string]{&c.Topics}, // 21 to 25
		&c.Prompt, &c.Calls, (*int64)(&c.Took), usageFields(&c.Reused), &c.Nano, &c.Unpriced, &c.Changed, // 26 to 32
		messages[session.Result]{&c.Hidden.Results, resultFields}, message{&c.Grounding.Grounded, &c.Grounding.Lines}, // 33, 34
	}
}

func resultFields(r *session.Result) message { return message{&r.Pos, &r.Sum, &r.Size} }

func rangeFields(r *session.Range) message { return message{&r.From, &r.To} }

func trimFields(t *session.Trim) message {
	return message{&t.Pos, &t.Head, &t.Tail, &t.Tidy, messages[session.Copy]{&t.Copies, copyFields}, &t.Named, &t.Bare}
}

func copyFields(c *session.Copy) message { return message{&c.From, &c.To, &c.Source, &c.At} }

// eventFields leaves out the Seq, which is the entry's place in the log. run are the events after e that share its entry. If keys are
// configured, sealedRef is the sealed form of e.Ref, which is then empty.
func eventFields(e *session.Event, payload, sealedRef *[]byte, run *[]session.Event) message {
	return message{
		&e.Kind, &e.Pos, &e.After, &e.Digest, &e.Chain, &e.Tokens, &e.Time, payload, // 1 to 8
		(*string)(&e.Ref.Thread), &e.Ref.Seq, messages[session.Event]{run, runFields}, sealedRef, // 9 to 12
	}
}

func refFields(id *session.EntryID) message { return message{(*string)(&id.Thread), &id.Seq} }

// runFields are the fields of an event that shares its entry with the one before. It leaves out what can be derived from that one.
func runFields(e *session.Event) message { return message{&e.Kind, &e.Tokens, &e.Digest} }

// follow sets the fields that runFields leaves out of the event after e.
func follow(e, after *session.Event) {
	after.Pos, after.Chain, after.Time, after.Encrypted = e.Pos+1, session.Next(e.Chain, after.Digest), e.Time, e.Encrypted
	if e.Ref.Thread != "" {
		after.Ref = session.EntryID{Thread: e.Ref.Thread, Seq: e.Ref.Seq + 1}
	}
}

// maxRun is the maximum number of events in one entry. It bounds the events in a page of entries.
const maxRun = 64

// Events encodes events of a thread, without their Seq, as log entries. Successive messages that refer to successive entries of another
// thread (Event.Ref) become one entry, up to maxRun.
func (o Content) Events(thread session.ThreadID, events []session.Event) (entries [][]byte) {
	for len(events) > 0 {
		n := 1
		for ; o.Keep && n < min(len(events), maxRun) && events[n].Ref.Thread != ""; n++ {
			e := session.Event{Kind: events[n].Kind, Tokens: events[n].Tokens, Digest: events[n].Digest}
			if follow(&events[n-1], &e); !reflect.DeepEqual(e, events[n]) {
				break
			}
		}
		entries = append(entries, o.entry(thread, events[0], events[1:n]))
		events = events[n:]
	}
	return entries
}

// Event encodes an event of a thread without its Seq.
func (o Content) Event(thread session.ThreadID, e session.Event) []byte {
	return o.entry(thread, e, nil)
}

func (o Content) entry(thread session.ThreadID, e session.Event, run []session.Event) []byte {
	var payload, sealedRef []byte
	switch {
	case !o.Keep:
		e.Ref = session.EntryID{}
	case len(e.Payload) > 0:
		payload, e.Ref = o.content(e.Payload, eventPlace(thread, e)), session.EntryID{}
	case e.Ref.Thread != "" && o.Keys.Seals():
		sealedRef = o.content(refFields(&e.Ref).encode(), refPlace(thread, e, run))
		e.Ref = session.EntryID{}
	}
	return eventFields(&e, &payload, &sealedRef, &run).encode()
}

// ParseEvents decodes the events of a log entry, whose payloads do not alias b. If the payload or the reference of the entry cannot be
// read, ParseEvents returns the events without it. The error is then nil if the key is not configured, session.ErrUnreadable if encrypted
// content was changed or moved, and otherwise ErrCorrupt. If nothing of the entry can be read, it returns one event of kind
// session.Unreadable, and ErrCorrupt.
func (o Content) ParseEvents(thread session.ThreadID, b []byte, seq uint64) ([]session.Event, error) {
	events, payload, sealedRef, err := parseEntry(b)
	if err != nil {
		return []session.Event{{Seq: seq}}, err
	}
	e := &events[0]
	e.Encrypted = isSealed(payload) || isSealed(sealedRef)
	switch {
	case payload != nil:
		e.Payload, err = o.open(payload, eventPlace(thread, *e))
	case sealedRef != nil:
		sealedRef, err = o.open(sealedRef, refPlace(thread, *e, events[1:]))
		if err == nil {
			err = refFields(&e.Ref).decode(sealedRef)
		}
	}
	if err != nil {
		e.Ref = session.EntryID{}
	}
	if _, unknownKey := errors.AsType[*seal.KeyError](err); unknownKey {
		err = nil
	}
	if errors.Is(err, seal.ErrTampered) {
		err = fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	for i := range events {
		events[i].Seq = seq
		if i > 0 {
			follow(&events[i-1], &events[i])
		}
	}
	return events, err
}

// Page collects the entries of a page of events in the order in which they are read.
type Page struct {
	Limit int // negative: the newest entry is read first

	entries [][]session.Event
	size    int
}

// Full reports whether the page has Limit entries or session.PageBytes of payloads.
func (p *Page) Full() bool {
	return len(p.entries) >= max(p.Limit, -p.Limit) || p.size >= session.PageBytes
}

// Add adds the events of an entry.
func (p *Page) Add(events []session.Event) {
	p.entries = append(p.entries, events)
	for i := range events {
		p.size += len(events[i].Payload)
	}
}

// Events returns all events, oldest first.
func (p *Page) Events() []session.Event {
	if p.Limit < 0 {
		slices.Reverse(p.entries)
	}
	return slices.Concat(p.entries...)
}

// ChainsOf decodes only the chain hashes of a log entry, or returns ErrCorrupt.
func ChainsOf(b []byte) (chains []session.Hash, err error) {
	events, _, _, err := parseEntry(b)
	for i := range events {
		if !events[i].Chain.IsZero() {
			chains = append(chains, events[i].Chain)
		}
	}
	return chains, err
}

// parseEntry decodes an entry. It returns the payload of the first event, or the sealed reference to the entry that stores it (sealedRef),
// separately and in its stored form.
func parseEntry(b []byte) (events []session.Event, payload, sealedRef []byte, err error) {
	var e session.Event
	var run []session.Event
	err = eventFields(&e, &payload, &sealedRef, &run).decode(b)
	if err == nil && (payload != nil && (sealedRef != nil || len(run) > 0) || (payload != nil || sealedRef != nil) && e.Ref.Thread != "") {
		err = ErrCorrupt // otherwise a reference in clear could pass for a sealed one
	}
	events = append([]session.Event{e}, run...)
	for i := range events {
		if i > 0 {
			follow(&events[i-1], &events[i])
		}
		if err == nil && events[i].Kind == 0 {
			err = ErrCorrupt
		}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return events, payload, sealedRef, nil
}

// Condensed returns the log entry of c. Everything else about c is stored under the entry's Seq: its text as a summary, the
// rest in the thread's list of condensations.
func Condensed(c session.Condensation) session.Event {
	if c.IsReplacement() {
		return session.Event{Kind: session.HiddenCalls, Time: c.Time}
	}
	return session.Event{Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time}
}

// Condensation encodes c without its Seq and its summary text.
func Condensation(c session.Condensation) []byte { return condensationFields(&c).encode() }

// Listed appends c to an encoded list of condensations, as "SEQ:LENGTH:BYTES". A Redis script, which alone knows the next
// Seq, can append to a list in this form as well.
func Listed(list []byte, c session.Condensation) []byte {
	b := Condensation(c)
	return fmt.Appendf(list, "%d:%d:%s", c.ID.Seq, len(b), b)
}

// List encodes a list of condensations.
func List(condensations []session.Condensation) []byte {
	var list []byte
	for _, c := range condensations {
		list = Listed(list, c)
	}
	return list
}

// SetList decodes a list and sets it as the thread's condensations and replacements.
func SetList(t *session.Thread, list []byte) error {
	all, err := ParseList(list)
	t.SetListed(all)
	return err
}

// ParseList decodes a list, or returns ErrCorrupt.
func ParseList(list []byte) ([]session.Condensation, error) {
	var all []session.Condensation
	for len(list) > 0 {
		c, rest, err := parseListed(list)
		if err != nil {
			return nil, err
		}
		all, list = append(all, c), rest
	}
	return all, nil
}

// parseListed decodes the first condensation of a list and returns the rest of the list.
func parseListed(list []byte) (c session.Condensation, rest []byte, err error) {
	parts := bytes.SplitN(list, []byte{':'}, 3)
	if len(parts) < 3 {
		return c, nil, ErrCorrupt
	}
	seq, seqErr := strconv.ParseUint(string(parts[0]), 10, 64)
	size, sizeErr := strconv.ParseUint(string(parts[1]), 10, 64)
	rest = parts[2]
	if seqErr != nil || sizeErr != nil || size > uint64(len(rest)) {
		return c, nil, ErrCorrupt
	}
	err = condensationFields(&c).decode(rest[:size])
	c.ID.Seq = seq
	return c, rest[size:], err
}

const maxID = 1024 // bytes; ids become parts of keys

// CheckIDs returns an error if the ids cannot become parts of keys.
func CheckIDs(thread session.ThreadID, ses session.SessionID) error {
	switch {
	case thread == "":
		return errors.New("no thread id")
	case len(thread) > maxID:
		return fmt.Errorf("thread id of %d bytes: at most %d", len(thread), maxID)
	case len(ses) > maxID:
		return fmt.Errorf("session id of %d bytes: at most %d", len(ses), maxID)
	}
	return nil
}

// Begins reports whether b may begin its thread if the store does not know it.
func Begins(b session.Batch) bool { return b.At == 0 || b.At == b.Thread.ForkAt }

// Last returns the place that b's traces point to.
func Last(b session.Batch) session.Place {
	if n := len(b.Places); n > 0 {
		return b.Places[n-1].Place
	}
	return session.Place{Thread: b.Thread.ID, Session: b.Thread.Session, Pos: b.Thread.Len}
}
