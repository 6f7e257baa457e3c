package records

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// sumName returns the field of a sum of an experiment.
func sumName(assignment session.Assignment, kind byte) string {
	return fmt.Sprintf("%d.%d%c", assignment.Arm, assignment.Group, kind)
}

// sums returns the parts of a Sums by the letter with which their fields end.
func sums(t *session.Sums) map[byte]*int64 {
	return map[byte]*int64{'s': &t.Sessions, 't': &t.Steps, 'u': &t.Unpriced, 'e': &t.Errors, 'n': &t.Nano}
}

const since = "since"

func experimentKey(name string) store.Key { return store.Key{Kind: kindExperiment, Group: name} }

// Enter implements session.Store.
func (s *Store) Enter(ctx context.Context, e session.Entry) error {
	key := experimentKey(e.Experiment)
	for range maxTries {
		began, err := s.began(ctx, &e)
		if err != nil || e.Begun.UnixMilli() < began.UnixMilli() {
			return err
		}
		part := store.Part{Key: key, If: []store.Cond{is(since, strconv.FormatInt(began.UnixMilli(), 10))}}
		for kind, n := range sums(&e.Sums) {
			if *n != 0 {
				part.Add = append(part.Add, store.Count{Name: sumName(e.Assignment, kind), N: *n})
			}
		}
		result, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}})
		if err != nil || result.OK() {
			return err
		}
		s.mu.Lock()
		delete(s.begins, e.Experiment) // the experiment was lost
		s.mu.Unlock()
	}
	return errBusy
}

// began returns when an experiment began, which is now if e is its first entry.
func (s *Store) began(ctx context.Context, e *session.Entry) (time.Time, error) {
	s.mu.Lock()
	began, known := s.begins[e.Experiment]
	s.mu.Unlock()
	if known {
		return began, nil
	}
	opens := strconv.FormatInt(e.Opens(time.Now()).UnixMilli(), 10)
	result, err := s.store.Commit(ctx, store.Commit{
		Parts: []store.Part{{Key: experimentKey(e.Experiment), New: []store.Field{set(since, opens)}}}, Return: []string{since},
	})
	if err != nil {
		return began, err
	}
	began = time.UnixMilli(number(result.Fields[since]))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins[e.Experiment] = began
	return began, nil
}

// Experiment implements session.Store.
func (s *Store) Experiment(ctx context.Context, name string) (e session.Experiment, err error) {
	rec, err := s.one(ctx, experimentKey(name))
	if err != nil || !rec.Exists() {
		return e, err
	}
	e.Since = time.UnixMilli(number(rec.Fields[since]))
	for arm := range e.Arms {
		for group := range e.Arms[arm] {
			assignment := session.Assignment{Arm: session.Arm(arm), Group: group}
			for kind, n := range sums(&e.Arms[arm][group]) {
				*n = number(rec.Fields[sumName(assignment, kind)])
			}
		}
	}
	return e, nil
}
