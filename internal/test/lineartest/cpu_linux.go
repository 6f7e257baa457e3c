package lineartest

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns how long the calling thread has run, 0 if that is unknown.
func cpuTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // fails only for an unknown clock
	return time.Duration(t.Nano())
}
