package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the time that the processes have spent on processors, by their CPU clocks: to the nanosecond, all threads.
func cpuTime(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		var ts unix.Timespec
		if unix.ClockGettime(processClock(pid), &ts) == nil {
			sum += time.Duration(ts.Nano())
		}
	}
	return sum
}

// processClock is the id of another process's CPU clock, as clock_getcpuclockid(3) makes it.
func processClock(pid int) int32 { return int32(^pid<<3 | 2) }

// memory is the resident memory of the processes and its highest since forgetPeak, in bytes.
func memory(pids []int) (now, peak int64) {
	for _, pid := range pids {
		now += statusField(pid, "VmRSS:")
		peak += statusField(pid, "VmHWM:")
	}
	return now, peak
}

// forgetPeak makes the highest memory what it is now.
func forgetPeak(pids []int) {
	for _, pid := range pids {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // else the peak is an older one
	}
}

func statusField(pid int, name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// children lists the processes that a process has started.
func children(parent int) []int {
	var out []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
