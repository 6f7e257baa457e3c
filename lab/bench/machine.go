package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
)

// describe says what a run ran on, and nothing by which it could be found; outside Linux much is unknown.
func describe(ctx context.Context) string {
	kernel := found("/proc/sys/kernel/osrelease", `^([^-\n]+)`) // without what a builder added
	text := fmt.Sprintf("%s, %d cores, %.0f GB of memory; %s/%s %s; %s", found("/proc/cpuinfo", `model name\s*: (.*)`), runtime.NumCPU(),
		float64(kilobytes("/proc/meminfo", "MemTotal"))/(1<<30), runtime.GOOS, runtime.GOARCH, kernel, runtime.Version())
	before := "; "
	for _, program := range [][2]string{{nameNginx, "-v"}, {"redis-server", "--version"}} { // what is compared with
		if said, err := exec.CommandContext(ctx, program[0], program[1]).CombinedOutput(); err == nil {
			text += before + program[0] + " " + firstMatch(said, `(?:v=|nginx/)(\S+)`)
			before = ", "
		}
	}
	return text
}

// found is what a pattern's group matches in a file.
func found(path, pattern string) string {
	text, _ := os.ReadFile(path) // nothing matches
	return firstMatch(text, pattern)
}

func firstMatch(text []byte, pattern string) string {
	if m := regexp.MustCompile(pattern).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return "unknown"
}

// kilobytes reads "name: 1024 kB" in a file, as bytes; 0 if it is not there.
func kilobytes(path, name string) int64 {
	n, _ := strconv.ParseInt(found(path, name+`:\s*(\d+)`), 10, 64)
	return n << 10
}
