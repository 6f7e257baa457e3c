package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// field returns the field of a sum of an experiment.
func field(assignment session.Assignment, kind byte) string {
	return fmt.Sprintf("%d.%d%c", assignment.Arm, assignment.Group, kind)
}

// sums returns the parts of a Sums by the letter with which their fields end.
func sums(t *session.Sums) map[byte]*int64 {
	return map[byte]*int64{'s': &t.Sessions, 't': &t.Steps, 'u': &t.Unpriced, 'n': &t.Nano}
}

// Enter implements session.Store. An entry that is sent again after its connection broke may count twice.
func (s *Store) Enter(ctx context.Context, e session.Entry) error {
	args := []any{e.Begun.UnixMilli(), e.Opens(time.Now()).UnixMilli(), s.options.TTL.Milliseconds()}
	for kind, n := range sums(&e.Sums) {
		if *n != 0 {
			args = append(args, field(e.Assignment, kind), *n)
		}
	}
	return s.execScript(ctx, script{enterScript, []string{s.keys.experiment(e.Experiment)}, args})
}

func (s *Store) Experiment(ctx context.Context, name string) (e session.Experiment, err error) {
	fields, err := result(ctx, s.read, func(ctx context.Context) (map[string]string, error) {
		return s.client.HGetAll(ctx, s.keys.experiment(name)).Result()
	})
	if err != nil || len(fields) == 0 {
		return e, err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(fields[name], 10, 64) // 0 for a field that does not exist
		return n
	}
	e.Since = time.UnixMilli(number("since"))
	for arm := range e.Arms {
		for group := range e.Arms[arm] {
			assignment := session.Assignment{Arm: session.Arm(arm), Group: group}
			for kind, n := range sums(&e.Arms[arm][group]) {
				*n = number(field(assignment, kind))
			}
		}
	}
	return e, nil
}
