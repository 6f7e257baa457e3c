package boltstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// holds are what is held of one account, by id. They are in memory: the file belongs to one process, and a new one holds nothing.
type holds map[string]room

type room struct {
	held  int64
	until time.Time
}

// sum forgets what is held no longer.
func (h holds) sum(now time.Time) (total int64) {
	for id, one := range h {
		if one.until.Before(now) {
			delete(h, id)
			continue
		}
		total += one.held
	}
	return total
}

// account is the key of an account and its period.
func account(a session.Account) string {
	return string(binary.BigEndian.AppendUint64([]byte(accounts.of(a.Tenant)+a.Name), uint64(a.Until.Unix()))) //nolint:gosec // the same 64 bits
}

// parseAccount reads what was spent of an account, and when it is to be forgotten.
func parseAccount(value []byte) (spent int64, until time.Time, err error) {
	if len(value) != 16 {
		return 0, until, codec.ErrCorrupt
	}
	return int64(binary.BigEndian.Uint64(value)), time.Unix(int64(binary.BigEndian.Uint64(value[8:])), 0), nil //nolint:gosec // the same 64 bits
}

func spentOf(ch *change, key string) (spent int64, err error) {
	if value := ch.get(key); value != nil {
		spent, _, err = parseAccount(value)
	}
	return spent, err
}

func putSpent(ch *change, c *session.Charge, spent int64) {
	value := binary.BigEndian.AppendUint64(nil, uint64(spent))                                //nolint:gosec // the same 64 bits
	value = binary.BigEndian.AppendUint64(value, uint64(c.Until.Add(session.HoldFor).Unix())) //nolint:gosec // the same 64 bits
	ch.put(account(c.Account), value)
}

func (s *Store) Reserve(ctx context.Context, id string, charges []session.Charge) (out session.Reserved, err error) {
	now, held := time.Now(), false
	err = s.change(ctx, false, func(ch *change) error {
		for i := range charges {
			key := account(charges[i].Account)
			spent, err := spentOf(ch, key)
			if err != nil {
				return err
			}
			b := session.Balance{Spent: spent, Held: s.pending.holds[key].sum(now)}
			_, own := s.pending.holds[key][id]
			held = held || own
			out.Full = out.Full || charges[i].Full(b)
			out.Balances = append(out.Balances, b)
		}
		if out.Full = out.Full && !held; out.Full || held || id == "" {
			return nil
		}
		for i := range charges {
			s.hold(&charges[i], id, now)
			putSpent(ch, &charges[i], out.Balances[i].Spent+charges[i].Amount)
		}
		return nil
	})
	return out, err
}

func (s *Store) hold(c *session.Charge, id string, now time.Time) {
	key := account(c.Account)
	if s.pending.holds[key] == nil {
		s.pending.holds[key] = holds{}
	}
	s.pending.holds[key][id] = room{c.Room, now.Add(session.HoldFor)}
}

func (s *Store) Settle(ctx context.Context, id string, charges []session.Charge) error {
	return s.change(ctx, false, func(ch *change) error {
		for i := range charges {
			key := account(charges[i].Account)
			if _, held := s.pending.holds[key][id]; !held {
				continue
			}
			spent, err := spentOf(ch, key)
			if err != nil {
				return err
			}
			if delete(s.pending.holds[key], id); len(s.pending.holds[key]) == 0 {
				delete(s.pending.holds, key)
			}
			putSpent(ch, &charges[i], spent+charges[i].Amount)
		}
		return nil
	})
}

// expireAccounts deletes what was spent in periods that are over.
func (s *Store) expireAccounts(ctx context.Context) error {
	return s.change(ctx, false, func(c *change) error {
		return c.tx.Bucket(accounts.name()).ForEach(func(name, value []byte) error {
			if _, until, err := parseAccount(value); err != nil || until.Before(time.Now()) {
				c.delete(accounts.key(string(name)))
			}
			return nil
		})
	})
}
