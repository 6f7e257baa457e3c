package boltstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// An experiment is a record of when it began, and one of each seat's sums: numbers of variable length.
func experiment(name string) string { return meta.key("experiment:" + name) }

func seat(name string, s session.Seat) string {
	return experiment(name) + string([]byte{':', byte(s.Arm), byte(s.Group)}) //nolint:gosec // there are few groups
}

func (s *Store) Enter(ctx context.Context, c session.Entry) error {
	return s.change(ctx, false, func(ch *change) error {
		since := []int64{c.Opens(time.Now()).UnixMilli()}
		if old := ch.get(experiment(c.Experiment)); old == nil {
			ch.put(experiment(c.Experiment), numbers(since...))
		} else if err := parseNumbers(old, &since[0]); err != nil {
			return err
		}
		if c.Begun.UnixMilli() < since[0] {
			return nil
		}
		key := seat(c.Experiment, c.Seat)
		sum, err := parseSums(ch.get(key))
		if err != nil {
			return err
		}
		sum.Add(c.Sums)
		ch.put(key, numbers(sum.Sessions, sum.Steps, sum.Unpriced, sum.Nano))
		return nil
	})
}

func (s *Store) Experiment(ctx context.Context, name string) (a session.Experiment, err error) {
	err = s.read(ctx, func(r *reader) error {
		begun, since := r.get(experiment(name)), int64(0)
		if begun == nil {
			return nil
		}
		err := parseNumbers(begun, &since)
		a.Since = time.UnixMilli(since)
		for arm := range a.Arms {
			for group := 0; group < session.Groups && err == nil; group++ {
				a.Arms[arm][group], err = parseSums(r.get(seat(name, session.Seat{Arm: session.Arm(arm), Group: group})))
			}
		}
		return err
	})
	return a, err
}

func numbers(all ...int64) (out []byte) {
	for _, n := range all {
		out = binary.AppendVarint(out, n)
	}
	return out
}

func parseNumbers(b []byte, into ...*int64) error {
	for _, n := range into {
		value, size := binary.Varint(b)
		if size <= 0 {
			return codec.ErrCorrupt
		}
		*n, b = value, b[size:]
	}
	return nil
}

// parseSums reads sums; of a seat that has none, zero.
func parseSums(b []byte) (t session.Sums, err error) {
	if b != nil {
		err = parseNumbers(b, &t.Sessions, &t.Steps, &t.Unpriced, &t.Nano)
	}
	return t, err
}
