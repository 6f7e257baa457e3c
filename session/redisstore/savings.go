package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// savingsFields are the sums of a thread's savings in its record, in the order of their names, and at last the model of Unpriced.
var savingsFields = []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "vm"}

// sumsOf are what those fields hold. A name is never given to another sum.
func sumsOf(s *session.Savings) []int64 {
	return []int64{
		s.Tokens, s.NotSent, s.Rewritten,
		int64(s.Calls), int64(s.Used.Input), int64(s.Used.Cached), int64(s.Used.Output), s.Nano, int64(s.Took),
	}
}

// Save implements session.Store.
func (s *Store) Save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	args := []any{token(), more.Unpriced}
	for i, n := range sumsOf(&more) {
		if n != 0 {
			args = append(args, savingsFields[i], n)
		}
	}
	return s.done(ctx, script{saveScript, []string{s.keys.thread(id)}, args})
}

// Saved implements session.Store.
func (s *Store) Saved(ctx context.Context, id session.ThreadID) (session.Savings, error) {
	fields, err := s.fields(ctx, s.keys.thread(id), savingsFields...)
	if err != nil {
		return session.Savings{}, err
	}
	n := make([]int64, len(fields))
	for i, text := range fields {
		n[i], _ = strconv.ParseInt(text, 10, 64) // of a field that is not there, 0
	}
	return session.Savings{
		Tokens: n[0], NotSent: n[1], Rewritten: n[2],
		Cost: session.Cost{
			Calls: int(n[3]), Used: session.Usage{Input: int(n[4]), Cached: int(n[5]), Output: int(n[6])}, Nano: n[7], Took: time.Duration(n[8]),
			Unpriced: fields[9],
		},
	}, nil
}
