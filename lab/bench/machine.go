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

// Machine is what a run ran on: nothing by which it could be found.
type Machine struct {
	CPU      string
	Cores    int
	Memory   string
	System   string
	Go       string
	Versions []string // of what is compared with
	Load     string   // average over a minute, before the run
}

// describe describes this machine; outside Linux much is unknown.
func describe(ctx context.Context) Machine {
	m := Machine{
		CPU: found("/proc/cpuinfo", `model name\s*: (.*)`), Cores: runtime.NumCPU(), Load: found("/proc/loadavg", `^(\S+)`), Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH + " " + found("/proc/sys/kernel/osrelease", `^([^-\n]+)`), // without what a builder added
		Memory: fmt.Sprintf("%.0f GB", float64(kilobytes("/proc/meminfo", "MemTotal"))/(1<<30)),
	}
	for _, program := range [][2]string{{nameNginx, "-v"}, {"redis-server", "--version"}} {
		if said, err := exec.CommandContext(ctx, program[0], program[1]).CombinedOutput(); err == nil {
			m.Versions = append(m.Versions, program[0]+" "+firstMatch(said, `(?:v=|nginx/)(\S+)`))
		}
	}
	return m
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
