package boltstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// experiment returns the key of an experiment: when it began, then the sums of each seat.
func experiment(name string) string { return meta.key("experiment:" + name) }

// experimentNumbers returns the numbers of an experiment, which began at since.
func experimentNumbers(e *session.Experiment, since *int64) []*int64 {
	all := []*int64{since}
	for arm := range e.Arms {
		for group := range e.Arms[arm] {
			t := &e.Arms[arm][group]
			all = append(all, &t.Sessions, &t.Steps, &t.Unpriced, &t.Nano)
		}
	}
	return all
}

func (s *Store) Enter(ctx context.Context, entry session.Entry) error {
	return s.change(ctx, false, func(c *change) error {
		var e session.Experiment
		since := entry.Opens(time.Now()).UnixMilli()
		all, key := experimentNumbers(&e, &since), experiment(entry.Experiment)
		if stored := c.get(key); stored != nil {
			if err := parseNumbers(stored, all...); err != nil {
				return err
			}
		}
		if entry.Begun.UnixMilli() >= since {
			e.Arms[entry.Seat.Arm][entry.Seat.Group].Add(entry.Sums)
		}
		c.put(key, numbers(all...))
		return nil
	})
}

func (s *Store) Experiment(ctx context.Context, name string) (session.Experiment, error) {
	return query(ctx, s, func(r *reader) (e session.Experiment, err error) {
		if stored := r.get(experiment(name)); stored != nil {
			var since int64
			err = parseNumbers(stored, experimentNumbers(&e, &since)...)
			e.Since = time.UnixMilli(since)
		}
		return e, err
	})
}

// numbers encodes numbers as varints.
func numbers(all ...*int64) (out []byte) {
	for _, n := range all {
		out = binary.AppendVarint(out, *n)
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
