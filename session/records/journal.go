package records

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// A session's journal is a log of its record, which has the last batches of those that write it (jo).
// Sessions are found by the names of entries in a few records for each day. An entry begins with its name and day, by which the name is deleted
// with the session; names of entries that made room for newer ones expire. The totals of a period are a record, which also has the last batch of
// each writer.
const (
	lastBatches = "jo"
	maxWriters  = 16 // of one session whose last batches are kept
	nameLen     = 8  // bytes of a name that are kept
	entryHead   = nameLen + 2
	shards      = 16 // records of names for each day
	namesOf     = 512
)

// writerField begins the name of a field that holds a writer's last batch. The fields of rows begin otherwise.
const writerField = "\x00"

func namesKey(day uint16, first byte) store.Key {
	return store.Key{Kind: kindNames, Group: fmt.Sprintf("%d:%d", day, first%shards)}
}

func totalsKey(period string) store.Key { return store.Key{Kind: kindTotals, Group: period} }

// dayOf returns the number of a day.
func dayOf(t time.Time) uint16 { return uint16(t.Unix() / (24 * 60 * 60)) } //nolint:gosec // until 2149

// WriteJournal implements session.Journal. It takes two round trips for each session and each period.
func (s *Store) WriteJournal(ctx context.Context, b session.JournalBatch) error {
	day, number := dayOf(time.Now()), strconv.FormatUint(b.Number, 10)
	bySession, byPeriod := map[session.SessionID][]session.JournalEntry{}, map[string][]session.Total{}
	for _, e := range b.Entries {
		bySession[e.Session] = append(bySession[e.Session], e)
	}
	for _, t := range b.Totals {
		byPeriod[t.Period] = append(byPeriod[t.Period], t)
	}
	for id, entries := range bySession {
		if err := s.addEntries(ctx, id, batchID{b.Writer, number}, day, entries); err != nil {
			return err
		}
	}
	for period, rows := range byPeriod {
		if err := s.addTotals(ctx, period, writerField+b.Writer, number, rows); err != nil {
			return err
		}
	}
	return nil
}

// batchID names a batch by its writer and its number.
type batchID struct{ writer, number string }

// noted returns a list of the last batches of a session's writers with this one at its end, and whether the list had it. A writer that has not
// written for long makes room for others.
func (b batchID) noted(list string) (next string, known bool) {
	var all []string
	for pair := range slices.Chunk(session.Parted[string](list), 2) {
		if len(pair) == 2 && pair[0] == b.writer {
			known = pair[1] == b.number
			continue
		}
		all = append(all, pair...)
	}
	all = append(all, b.writer, b.number)
	return session.Joined(all[max(0, len(all)-2*maxWriters):]), known
}

// addEntries adds a batch of entries to the journal of a session, unless the session does not exist or has them. If it has them, their names may
// still be missing, because a store may keep them elsewhere.
func (s *Store) addEntries(ctx context.Context, id session.SessionID, batch batchID, day uint16, entries []session.JournalEntry) error {
	for range maxTries {
		rec, err := s.one(ctx, sessionKey(id), "v", lastBatches, store.End(logJournal))
		if err != nil || rec.Fields["v"] == "" {
			return err
		}
		parts := nameParts(id, day, entries)
		last, known := batch.noted(rec.Fields[lastBatches])
		if known && len(parts) == 0 {
			return nil
		}
		first := store.Part{Key: sessionKey(id), If: []store.Cond{is("v", rec.Fields["v"])}, Renew: store.Never}
		if !known {
			first = journalPart(id, last, day, entries, rec)
		}
		result, err := s.store.Commit(ctx, store.Commit{Parts: append([]store.Part{first}, parts...)})
		switch {
		case err != nil:
			return err
		case result.OK() && s.store.Late() > 0:
			return s.unlessGone(ctx, id, day, entries)
		case result.OK():
			return nil
		}
	}
	return errBusy
}

func journalPart(id session.SessionID, last string, day uint16, entries []session.JournalEntry, rec store.Record) store.Part {
	part := store.Part{
		Key: journaledKey(id), If: []store.Cond{is("v", rec.Fields["v"]), is(lastBatches, rec.Fields[lastBatches])},
		Set: []store.Field{set(lastBatches, last)}, Renew: store.Now,
	}
	add := store.Append{Log: logJournal}
	for _, e := range entries {
		head := binary.BigEndian.AppendUint16(slices.Clone(e.Name[:nameLen]), day)
		add.Entries = append(add.Entries, string(head)+string(e.Value))
	}
	part.Log = []store.Append{add}
	if number(rec.Fields[store.End(logJournal)])+int64(len(entries)) > session.MaxJournal {
		part.Trim = []store.Trim{{Log: logJournal, Keep: session.MaxJournal}}
	}
	return part
}

// nameParts returns the changes by which a session is found by the names of its entries.
func nameParts(id session.SessionID, day uint16, entries []session.JournalEntry) (parts []store.Part) {
	at := map[store.Key]int{}
	for _, e := range entries {
		if e.Name.IsZero() {
			continue
		}
		key := namesKey(day, e.Name[0])
		i, known := at[key]
		if !known {
			i, at[key] = len(parts), len(parts)
			parts = append(parts, store.Part{Key: key, Keep: session.JournalNamesFor})
		}
		parts[i].Set = append(parts[i].Set, set(string(e.Name[:nameLen]), string(id)))
	}
	return parts
}

// unlessGone takes the names of entries back if their session was deleted before the names were written.
func (s *Store) unlessGone(ctx context.Context, id session.SessionID, day uint16, entries []session.JournalEntry) error {
	rec, err := s.one(ctx, sessionKey(id), "v")
	if err != nil || rec.Exists() {
		return err
	}
	names := map[store.Key][]string{}
	for _, e := range entries {
		if !e.Name.IsZero() {
			key := namesKey(day, e.Name[0])
			names[key] = append(names[key], string(e.Name[:nameLen]))
		}
	}
	return s.forgetNames(ctx, id, names)
}

// deleteNames deletes the names of a session's entries.
func (s *Store) deleteNames(ctx context.Context, id session.SessionID) error {
	names := map[store.Key][]string{}
	err := s.eachEntry(ctx, sessionKey(id), logJournal, func(_ uint64, entry string) {
		if len(entry) >= entryHead && entry[:nameLen] != strings.Repeat("\x00", nameLen) {
			key := namesKey(binary.BigEndian.Uint16([]byte(entry[nameLen:entryHead])), entry[0])
			names[key] = append(names[key], entry[:nameLen])
		}
	})
	if err != nil {
		return err
	}
	return s.forgetNames(ctx, id, names)
}

// forgetNames deletes names, except those that another session has by now.
func (s *Store) forgetNames(ctx context.Context, id session.SessionID, names map[store.Key][]string) error {
	for key, all := range names {
		for some := range slices.Chunk(all, namesOf) {
			if err := s.forgetSome(ctx, id, key, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetSome deletes those names of one record that are a session's when they are deleted.
func (s *Store) forgetSome(ctx context.Context, id session.SessionID, key store.Key, names []string) error {
	for range maxTries {
		rec, err := s.one(ctx, key, names...)
		if err != nil {
			return err
		}
		part := store.Part{Key: key, Renew: store.Never}
		for _, name := range names {
			if rec.Fields[name] == string(id) {
				part.If, part.Set = append(part.If, is(name, string(id))), append(part.Set, set(name, ""))
			}
		}
		if len(part.Set) == 0 {
			return nil
		}
		result, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}})
		if err != nil || result.OK() {
			return err
		}
	}
	return errBusy
}

// ReadJournal implements session.Journal.
func (s *Store) ReadJournal(ctx context.Context, id session.SessionID, before uint64, limit int) (page []session.JournalEntry, err error) {
	at := uint64(1<<52) - 1
	if before > 0 {
		at = before - 1
	}
	for at > 0 && len(page) < limit {
		got, err := s.store.Log(ctx, store.LogQuery{Key: sessionKey(id), Log: logJournal, At: at, Limit: -(limit - len(page)), Bytes: session.PageBytes})
		if errors.Is(err, session.ErrNotFound) {
			return page, nil
		}
		if err != nil || len(got.Entries) == 0 {
			return page, err
		}
		for i, entry := range got.Entries {
			if len(entry) >= entryHead {
				page = append(page, session.JournalEntry{Session: id, Number: got.First - uint64(i), Value: []byte(entry[entryHead:])})
			}
		}
		at = got.First - uint64(len(got.Entries))
	}
	return page, nil
}

// FindJournal implements session.Journal. It looks in the names of each day, the newest first.
func (s *Store) FindJournal(ctx context.Context, name session.Hash) (session.SessionID, error) {
	q, field := store.Query{}, string(name[:nameLen])
	today := dayOf(time.Now())
	for age := uint16(0); age <= uint16(session.JournalNamesFor/(24*time.Hour)); age++ {
		q.Records = append(q.Records, store.Select{Key: namesKey(today-age, name[0]), Fields: []string{field}})
	}
	found, err := s.store.Read(ctx, q)
	if err != nil {
		return "", err
	}
	for _, day := range found.Records {
		if id := day.Fields[field]; id != "" {
			return session.SessionID(id), nil
		}
	}
	return "", session.ErrNotFound
}

// addTotals adds rows to a period, unless it has them.
func (s *Store) addTotals(ctx context.Context, period, writer, batch string, rows []session.Total) error {
	for range maxTries {
		rec, err := s.one(ctx, totalsKey(period), writer)
		if err != nil || rec.Fields[writer] == batch {
			return err
		}
		part := store.Part{
			Key: totalsKey(period), If: []store.Cond{is(writer, rec.Fields[writer])}, Set: []store.Field{set(writer, batch)}, Keep: session.TotalsFor,
		}
		for _, t := range rows {
			for i, n := range t.Values {
				if n != 0 {
					part.Add = append(part.Add, store.Count{Name: t.Row + "\x00" + strconv.Itoa(i), N: n})
				}
			}
		}
		result, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}})
		if err != nil || result.OK() {
			return err
		}
	}
	return errBusy
}

// maxTotal bounds how many integers a row is read to have.
const maxTotal = 1000

// Totals implements session.Journal.
func (s *Store) Totals(ctx context.Context, period string) (all []session.Total, err error) {
	rec, err := s.one(ctx, totalsKey(period))
	if err != nil {
		return nil, err
	}
	rows := map[string][]int64{}
	for field, value := range rec.Fields {
		split := strings.LastIndexByte(field, 0)
		if split <= 0 { // a writer's
			continue
		}
		row := field[:split]
		i, err := strconv.Atoi(field[split+1:])
		n, err2 := strconv.ParseInt(value, 10, 64)
		if err := errors.Join(err, err2); err != nil || i < 0 || i > maxTotal {
			return nil, fmt.Errorf("totals of %s: %w", period, codec.ErrCorrupt)
		}
		for len(rows[row]) <= i {
			rows[row] = append(rows[row], 0)
		}
		rows[row][i] = n
	}
	for row, values := range rows {
		all = append(all, session.Total{Period: period, Row: row, Values: values})
	}
	return all, nil
}
