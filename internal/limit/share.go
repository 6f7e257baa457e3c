package limit

import "time"

// Draw takes from a bucket that replicas share, by its name: see session.Buckets. It is not ok while they cannot.
type Draw func(bucket string, n, perMinute int, owed bool) (wait time.Duration, ok bool)

// Share is a process's part in a bucket of that name: while replicas cannot share, its own bucket stands in.
type Share struct {
	*Bucket
	Name string
	Draw Draw // nil: nothing is shared
}

// Take is Bucket.Take.
func (s Share) Take(now time.Time, n, perMinute int) (wait time.Duration, ok bool) {
	if wait, ok := s.draw(n, perMinute, false); ok {
		return wait, wait == 0
	}
	return s.Bucket.Take(now, n, perMinute)
}

// Full is Bucket.Full.
func (s Share) Full(now time.Time, perMinute int) time.Duration {
	if wait, ok := s.draw(0, perMinute, false); ok {
		return wait
	}
	return s.Bucket.Full(now, perMinute)
}

// Correct is Bucket.Correct.
func (s Share) Correct(n, perMinute int) {
	if _, ok := s.draw(n, perMinute, true); !ok {
		s.Bucket.Correct(n)
	}
}

func (s Share) draw(n, perMinute int, owed bool) (wait time.Duration, ok bool) {
	if s.Draw == nil {
		return 0, false
	}
	return s.Draw(s.Name, n, perMinute, owed)
}
