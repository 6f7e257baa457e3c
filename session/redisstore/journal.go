package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// A session's journal is in lists of journalBlock entries. Its record has the number of entries (jn) and the last batch (jo). Sessions are
// found by the names of entries in a few hashes for each day. An entry begins with its name and day, by which the name is deleted with the
// session; names of entries that made room for newer ones expire. The totals of a period are a hash, which also has the last batch of each writer.
const (
	journalBlock  = 128
	journalBlocks = session.MaxJournal/journalBlock + 2
	nameShards    = 16
	nameLen       = 8 // bytes of a name that are kept
	entryHead     = nameLen + 2
)

// journalScript appends entries to a session's journal. KEYS: session. ARGV: batch, lease in ms (0 for none), entries. It returns -1 if the session
// does not exist.
var journalScript = fmt.Sprintf(`
local size, most = %d, %d
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
local was, lease = redis.call('HMGET', KEYS[1], 'jn', 'jo'), tonumber(ARGV[2])
if was[2] == ARGV[1] then return 0 end
local n, block = tonumber(was[1] or 0), ''
for i = 3, #ARGV do
  local number = math.floor(n / size)
  block = KEYS[1] .. 'j' .. string.format('%%.0f', number)
  if n %% size == 0 then
    redis.call('DEL', block)
    if number >= most then redis.call('DEL', KEYS[1] .. 'j' .. string.format('%%.0f', number - most)) end
  end
  redis.call('RPUSH', block, ARGV[i])
  n = n + 1
  if lease > 0 and (n %% size == 0 or i == #ARGV) then redis.call('PEXPIRE', block, lease) end
end
redis.call('HSET', KEYS[1], 'jn', string.format('%%.0f', n), 'jo', ARGV[1])
return 1
`, journalBlock, journalBlocks)

// totalsScript adds to the totals of a period. KEYS: period. ARGV: field of the writer, number of the batch, TTL in ms, then pairs of a field
// and an amount.
const totalsScript = `
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
for i = 4, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
`

// writerField begins the name of a field that holds a writer's last batch. The fields of rows begin otherwise.
const writerField = "\x00"

// WriteJournal implements session.Journal. Names are written first, and taken back if their session does not exist: it may be deleted meanwhile.
func (s *Store) WriteJournal(ctx context.Context, b session.JournalBatch) error {
	day := dayOf(time.Now())
	scripts, replies := s.journalScripts(b, day), []*redis.Cmd(nil)
	err := s.pipe(ctx, func(pipe redis.Pipeliner, add addScript) {
		for _, e := range b.Entries {
			if e.Name != (session.Hash{}) {
				key := s.keys.names(day, e.Name[0])
				pipe.HSet(ctx, key, string(e.Name[:nameLen]), string(e.Session))
				pipe.PExpire(ctx, key, session.JournalNamesFor)
			}
		}
		replies = replies[:0]
		for _, c := range scripts {
			replies = append(replies, add(c))
		}
	})
	if err != nil {
		return err
	}
	gone := leftNames{}
	for i, reply := range replies {
		if n, err := reply.Int(); err == nil && n < 0 {
			for _, entry := range scripts[i].args[2:] {
				gone.add(s.keys, string(entry.([]byte)))
			}
		}
	}
	return s.deleteNames(ctx, gone)
}

// journalScripts returns a script for each session and for each period of a batch.
func (s *Store) journalScripts(b session.JournalBatch, day uint16) (all []script) {
	number := strconv.FormatUint(b.Number, 10)
	at := map[string]int{} // by key
	to := func(text, key string, args ...any) *script {
		i, known := at[key]
		if !known {
			i, at[key] = len(all), len(all)
			all = append(all, script{text, []string{key}, args})
		}
		return &all[i]
	}
	for _, e := range b.Entries {
		c := to(journalScript, s.keys.session(e.Session), b.Writer+":"+number, s.lease().Milliseconds())
		c.args = append(c.args, slices.Concat(binary.BigEndian.AppendUint16(slices.Clone(e.Name[:nameLen]), day), e.Value))
	}
	for _, t := range b.Totals {
		c := to(totalsScript, s.keys.totals(t.Period), writerField+b.Writer, number, session.TotalsFor.Milliseconds())
		for i, n := range t.Values {
			if n != 0 {
				c.args = append(c.args, t.Row+"\x00"+strconv.Itoa(i), n)
			}
		}
	}
	return all
}

// dayOf returns the number of a day.
func dayOf(t time.Time) uint16 { return uint16(t.Unix() / (24 * 60 * 60)) } //nolint:gosec // until 2149

// leftNames are names of entries, by the key of their hash.
type leftNames map[string][]string

// add adds the name of an entry.
func (l leftNames) add(k keys, entry string) {
	if len(entry) < entryHead || entry[:nameLen] == strings.Repeat("\x00", nameLen) {
		return
	}
	key := k.names(binary.BigEndian.Uint16([]byte(entry[nameLen:entryHead])), entry[0])
	l[key] = append(l[key], entry[:nameLen])
}

func (s *Store) deleteNames(ctx context.Context, names leftNames) error {
	if len(names) == 0 {
		return nil
	}
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
		for key, fields := range names {
			pipe.HDel(ctx, key, fields...)
		}
	})
}

// deleteJournal deletes the names of a session's entries, and its journal.
func (s *Store) deleteJournal(ctx context.Context, id session.SessionID) error {
	fields, err := s.fields(ctx, s.keys.session(id), "jn")
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(fields[0]) // 0 if there is none
	for block := (n - 1) / journalBlock; n > 0 && block >= 0 && block > (n-1)/journalBlock-journalBlocks; block-- {
		key := s.keys.journal(id) + strconv.Itoa(block)
		names := leftNames{}
		if err := s.eachEntry(ctx, key, func(entry string) { names.add(s.keys, entry) }); err != nil {
			return err
		}
		if err := s.deleteNames(ctx, names); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) ReadJournal(ctx context.Context, id session.SessionID, before uint64, limit int) (page []session.JournalEntry, err error) {
	fields, err := s.fields(ctx, s.keys.session(id), "jn")
	if err != nil {
		return nil, err
	}
	n, _ := strconv.ParseUint(fields[0], 10, 64) // 0 if there is none
	if before > 0 {
		n = min(n, before-1)
	}
	for n > 0 && len(page) < limit {
		block, first := (n-1)/journalBlock, (n-1)/journalBlock*journalBlock // first is the number of the entry before the block
		from := max(first, n-min(n, uint64(limit-len(page))))               //nolint:gosec // positive
		values, err := result(ctx, s.read, func(ctx context.Context) ([]string, error) {
			return s.client.LRange(ctx, s.keys.journal(id)+strconv.FormatUint(block, 10), int64(from-first), int64(n-1-first)).Result() //nolint:gosec // small
		})
		if err != nil {
			return nil, err
		}
		if uint64(len(values)) < n-from { // it has expired, or was evicted
			break
		}
		for i := len(values) - 1; i >= 0; i-- {
			if len(values[i]) >= entryHead {
				page = append(page, session.JournalEntry{Session: id, Number: from + uint64(i) + 1, Value: []byte(values[i][entryHead:])}) //nolint:gosec // small
			}
		}
		n = from
	}
	return page, nil
}

// FindJournal implements session.Journal. It looks in the names of each day, the newest first.
func (s *Store) FindJournal(ctx context.Context, name session.Hash) (session.SessionID, error) {
	var found []*redis.StringCmd
	err := s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		today := dayOf(time.Now())
		for age := uint16(0); age <= uint16(session.JournalNamesFor/(24*time.Hour)); age++ {
			found = append(found, pipe.HGet(ctx, s.keys.names(today-age, name[0]), string(name[:nameLen])))
		}
	})
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return "", err
	}
	for _, day := range found {
		if day.Err() == nil {
			return session.SessionID(day.Val()), nil
		}
	}
	return "", session.ErrNotFound
}

func (s *Store) Totals(ctx context.Context, period string) (all []session.Total, err error) {
	fields, err := result(ctx, s.read, func(ctx context.Context) (map[string]string, error) {
		return s.client.HGetAll(ctx, s.keys.totals(period)).Result()
	})
	if err != nil {
		return nil, err
	}
	rows := map[string][]int64{}
	for field, value := range fields {
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

// maxTotal bounds how many integers a row is read to have.
const maxTotal = 1000
