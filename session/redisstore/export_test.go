package redisstore

import "time"

// Hasten makes Forget wait less for late writes, which in tests go over loopback.
func Hasten(s *Store) { s.lateWrites = 20 * time.Millisecond }
