package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// field names a sum of an experiment.
func field(seat session.Seat, what byte) string {
	return fmt.Sprintf("%d.%d%c", seat.Arm, seat.Group, what)
}

// sums are the parts of a Sums, by the letter that ends their fields.
func sums(t *session.Sums) map[byte]*int64 {
	return map[byte]*int64{'s': &t.Sessions, 't': &t.Steps, 'u': &t.Unpriced, 'n': &t.Nano}
}

// Enter implements session.Store. An entry that is sent again after its connection broke may count twice.
func (s *Store) Enter(ctx context.Context, c session.Entry) error {
	args := []any{c.Begun.UnixMilli(), c.Opens(time.Now()).UnixMilli(), s.options.TTL.Milliseconds()}
	for what, n := range sums(&c.Sums) {
		if *n != 0 {
			args = append(args, field(c.Seat, what), *n)
		}
	}
	return s.done(ctx, script{enterScript, []string{s.keys.experiment(c.Experiment)}, args})
}

func (s *Store) Experiment(ctx context.Context, name string) (a session.Experiment, err error) {
	fields, err := result(ctx, s.read, func(ctx context.Context) (map[string]string, error) {
		return s.client.HGetAll(ctx, s.keys.experiment(name)).Result()
	})
	if err != nil || len(fields) == 0 {
		return a, err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(fields[name], 10, 64) // of a field that is not there, 0
		return n
	}
	a.Since = time.UnixMilli(number("since"))
	for arm := range a.Arms {
		for group := range a.Arms[arm] {
			for what, n := range sums(&a.Arms[arm][group]) {
				*n = number(field(session.Seat{Arm: session.Arm(arm), Group: group}, what))
			}
		}
	}
	return a, nil
}
