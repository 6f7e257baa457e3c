package boltstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// holds are the reservations of one account, by id. They are only in memory, because one process owns the file, and a new process has no
// reservations.
type holds map[string]reservation

type reservation struct {
	amount int64
	until  time.Time
}

// sum returns the total reserved and deletes expired reservations.
func (h holds) sum(now time.Time) (total int64) {
	for id, one := range h {
		if one.until.Before(now) {
			delete(h, id)
			continue
		}
		total += one.amount
	}
	return total
}

// account returns the key of an account.
func account(a session.Account) string {
	return string(binary.BigEndian.AppendUint64([]byte(accounts.prefix(a.Tenant)+a.Name), uint64(a.Until.Unix()))) //nolint:gosec // the same 64 bits
}

// parseAccount returns the amount spent of an account and when the account expires.
func parseAccount(value []byte) (spent int64, until time.Time, err error) {
	if len(value) != 16 {
		return 0, until, codec.ErrCorrupt
	}
	return int64(binary.BigEndian.Uint64(value)), time.Unix(int64(binary.BigEndian.Uint64(value[8:])), 0), nil //nolint:gosec // the same 64 bits
}

func (c *change) spent(account string) (spent int64, err error) {
	if value := c.get(account); value != nil {
		spent, _, err = parseAccount(value)
	}
	return spent, err
}

func (c *change) putSpent(a session.Account, spent int64) {
	value := binary.BigEndian.AppendUint64(nil, uint64(spent))                                //nolint:gosec // the same 64 bits
	value = binary.BigEndian.AppendUint64(value, uint64(a.Until.Add(session.HoldFor).Unix())) //nolint:gosec // the same 64 bits
	c.put(account(a), value)
}

func (s *Store) Reserve(ctx context.Context, id string, charges []session.Charge) (out session.Reserved, err error) {
	err = s.change(ctx, false, func(c *change) error {
		now, held := time.Now(), false
		for i := range charges {
			key := account(charges[i].Account)
			spent, err := c.spent(key)
			if err != nil {
				return err
			}
			b := session.Balance{Spent: spent, Held: s.pending.holds[key].sum(now)}
			_, own := s.pending.holds[key][id]
			held = held || own
			out.Full = out.Full || charges[i].Full(b)
			out.Balances = append(out.Balances, b)
		}
		out.Full = out.Full && !held
		if held || out.Full || id == "" {
			return nil
		}
		for i := range charges {
			key := account(charges[i].Account)
			if s.pending.holds[key] == nil {
				s.pending.holds[key] = holds{}
			}
			s.pending.holds[key][id] = reservation{amount: charges[i].Room, until: now.Add(session.HoldFor)}
			c.putSpent(charges[i].Account, out.Balances[i].Spent+charges[i].Amount)
		}
		return nil
	})
	return out, err
}

func (s *Store) Settle(ctx context.Context, id string, charges []session.Charge) error {
	return s.change(ctx, false, func(c *change) error {
		for i := range charges {
			key := account(charges[i].Account)
			if _, held := s.pending.holds[key][id]; !held {
				continue
			}
			spent, err := c.spent(key)
			if err != nil {
				return err
			}
			delete(s.pending.holds[key], id)
			if len(s.pending.holds[key]) == 0 {
				delete(s.pending.holds, key)
			}
			c.putSpent(charges[i].Account, spent+charges[i].Amount)
		}
		return nil
	})
}

// expireAccounts deletes the accounts of periods that are over.
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
