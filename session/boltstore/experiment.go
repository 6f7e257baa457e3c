package boltstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// An experiment has a record of when it began, and one with the sums of each assignment. Numbers are varints.
func experiment(name string) string { return meta.key("experiment:" + name) }

func assignment(name string, s session.Assignment) string {
	return experiment(name) + string([]byte{':', byte(s.Arm), byte(s.Group)}) //nolint:gosec // there are few groups
}

func (s *Store) Enter(ctx context.Context, e session.Entry) error {
	return s.change(ctx, false, func(c *change) error {
		since := e.Opens(time.Now()).UnixMilli()
		if stored := c.get(experiment(e.Experiment)); stored == nil {
			c.put(experiment(e.Experiment), numbers(since))
		} else if err := parseNumbers(stored, &since); err != nil {
			return err
		}
		if e.Begun.UnixMilli() < since {
			return nil
		}
		key := assignment(e.Experiment, e.Assignment)
		sum, err := parseSums(c.get(key))
		if err != nil {
			return err
		}
		sum.Add(e.Sums)
		c.put(key, numbers(sum.Sessions, sum.Steps, sum.Unpriced, sum.Nano, sum.Errors))
		return nil
	})
}

func (s *Store) Experiment(ctx context.Context, name string) (session.Experiment, error) {
	return query(ctx, s, func(r *reader) (e session.Experiment, err error) {
		stored := r.get(experiment(name))
		if stored == nil {
			return e, nil
		}
		var since int64
		err = parseNumbers(stored, &since)
		e.Since = time.UnixMilli(since)
		for arm := range e.Arms {
			for group := 0; group < session.Groups && err == nil; group++ {
				e.Arms[arm][group], err = parseSums(r.get(assignment(name, session.Assignment{Arm: session.Arm(arm), Group: group})))
			}
		}
		return e, err
	})
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

// parseSums returns zero sums for an assignment that has none.
func parseSums(b []byte) (t session.Sums, err error) {
	if b == nil || parseNumbers(b, &t.Sessions, &t.Steps, &t.Unpriced, &t.Nano, &t.Errors) == nil {
		return t, nil
	}
	return t, parseNumbers(b, &t.Sessions, &t.Steps, &t.Unpriced, &t.Nano) // without errors, as an earlier version wrote them
}
