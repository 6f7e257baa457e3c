package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the processor time that the target has used, by its processes' CPU clocks: to the nanosecond, all threads.
func (t *Target) cpu() time.Duration {
	var sum time.Duration
	for _, pid := range t.pids {
		var ts unix.Timespec
		if unix.ClockGettime(processClock(pid), &ts) == nil {
			sum += time.Duration(ts.Nano())
		}
	}
	return sum
}

// processClock is the id of another process's CPU clock, as clock_getcpuclockid(3) makes it.
func processClock(pid int) int32 { return int32(^pid<<3 | 2) }

// memory is the target's resident memory in bytes, and its highest since forgetPeak.
func (t *Target) memory() (now, peak int64) {
	for _, pid := range t.pids {
		status := fmt.Sprintf("/proc/%d/status", pid)
		now += kilobytes(status, "VmRSS")
		peak += kilobytes(status, "VmHWM")
	}
	return now, peak
}

// forgetPeak makes the highest memory what it is now.
func (t *Target) forgetPeak() {
	for _, pid := range t.pids {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // else the peak is an older one
	}
}

// children lists the processes that a process has started.
func children(parent int) (out []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent)) // it may have ended
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
