package records

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// An account has the fields s (the amount spent), h (the amount reserved), and one for each reservation: its amount, and until when it lasts in
// milliseconds. All accounts of a tenant are in one group.
const (
	spent       = "s"
	held        = "h"
	reservation = "h:"
)

func accountKey(a session.Account) store.Key {
	return store.Key{Kind: kindAccount, Group: a.Tenant, Name: a.Name + ":" + strconv.FormatInt(a.Until.Unix(), 10)}
}

func reserved(amount, until int64) string {
	return strconv.FormatInt(amount, 10) + ":" + strconv.FormatInt(until, 10)
}

func parseReserved(text string) (amount, until int64) {
	before, after, _ := strings.Cut(text, ":")
	return number(before), number(after)
}

// Reserve implements session.Ledger. It takes one round trip unless an account is full, or the reservation exists.
func (s *Store) Reserve(ctx context.Context, id string, charges []session.Charge) (session.Reserved, error) {
	for range maxTries {
		if id != "" {
			result, err := s.store.Commit(ctx, store.Commit{Parts: reserving(id, charges)})
			if err != nil {
				return session.Reserved{}, err
			}
			if result.OK() {
				return before(charges, result.Sums), nil
			}
		}
		out, final, err := s.balances(ctx, id, charges)
		if err != nil || final {
			return out, err
		}
	}
	return session.Reserved{}, errBusy
}

func reserving(id string, charges []session.Charge) (parts []store.Part) {
	now := time.Now()
	for _, c := range charges {
		parts = append(parts, store.Part{
			Key: accountKey(c.Account),
			If:  []store.Cond{is(reservation+id, ""), {Field: spent, Other: held, Test: store.Below, Limit: c.Limit}},
			Set: []store.Field{set(reservation+id, reserved(c.Room, now.Add(session.HoldFor).UnixMilli()))},
			Add: []store.Count{{Name: spent, N: c.Amount}, {Name: held, N: c.Room}}, Keep: keeping(c, now),
		})
	}
	return parts
}

// keeping returns how long an account is kept.
func keeping(c session.Charge, now time.Time) time.Duration {
	return max(c.Until.Sub(now), 0) + session.HoldFor
}

func before(charges []session.Charge, sums [][]int64) (out session.Reserved) {
	for i, c := range charges {
		if i < len(sums) && len(sums[i]) == 2 { // always, unless the server is none of this kind
			out.Balances = append(out.Balances, session.Balance{Spent: sums[i][0] - c.Amount, Held: sums[i][1] - c.Room})
		}
	}
	return out
}

// balances reads the accounts and releases reservations that have expired. final is false if another attempt to reserve may succeed.
func (s *Store) balances(ctx context.Context, id string, charges []session.Charge) (out session.Reserved, final bool, err error) {
	q := store.Query{}
	for _, c := range charges {
		q.Records = append(q.Records, store.Select{Key: accountKey(c.Account)})
	}
	found, err := s.store.Read(ctx, q)
	if err != nil {
		return out, false, err
	}
	known := false
	var expired []store.Part
	for i, c := range charges {
		fields := found.Records[i].Fields
		b := session.Balance{Spent: number(fields[spent]), Held: number(fields[held])}
		for name, value := range fields {
			amount, until := parseReserved(value)
			if strings.HasPrefix(name, reservation) && until <= time.Now().UnixMilli() {
				b.Held -= amount
				expired = append(expired, releasing(c, name, value))
			}
		}
		out.Balances = append(out.Balances, b)
		out.Full = out.Full || c.Full(b)
		known = known || fields[reservation+id] != ""
	}
	for _, part := range expired {
		if _, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}}); err != nil {
			return out, false, err
		}
	}
	out.Full = out.Full && id != "" && !known
	return out, id == "" || known || out.Full, nil
}

// releasing returns the change that releases a reservation, unless it is another one by now.
func releasing(c session.Charge, name, value string) store.Part {
	amount, _ := parseReserved(value)
	return store.Part{
		Key: accountKey(c.Account), If: []store.Cond{is(name, value)}, Set: []store.Field{set(name, "")},
		Add: []store.Count{{Name: held, N: -amount}}, Keep: keeping(c, time.Now()),
	}
}

// Settle implements session.Ledger. It takes two round trips.
func (s *Store) Settle(ctx context.Context, id string, charges []session.Charge) error {
	q, name := store.Query{}, reservation+id
	for _, c := range charges {
		q.Records = append(q.Records, store.Select{Key: accountKey(c.Account), Fields: []string{name}})
	}
	found, err := s.store.Read(ctx, q)
	for i := 0; i < len(charges) && err == nil; i++ {
		value := found.Records[i].Fields[name]
		if value == "" {
			continue
		}
		part := releasing(charges[i], name, value)
		part.Add = append(part.Add, store.Count{Name: spent, N: charges[i].Amount})
		_, err = s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}})
	}
	return err
}
