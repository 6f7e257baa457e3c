package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what a run ran on: nothing by which it could be found.
type Machine struct {
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Memory   string   `json:"memory"`
	System   string   `json:"system"`
	Go       string   `json:"go"`
	Versions []string `json:"versions"` // of what is compared with
	Load     string   `json:"load"`     // average over a minute, before the run
}

func describe(ctx context.Context) Machine {
	return Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: gigabytes(field("/proc/meminfo", "MemTotal")),
		System: runtime.GOOS + "/" + runtime.GOARCH + " " + kernel(), Go: runtime.Version(),
		Load:     load(),
		Versions: installed(version(ctx, "nginx", "-v"), version(ctx, "redis-server", "--version")),
	}
}

// field reads a line "name : value" of a file.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// kernel is the kernel's version, without what a builder added.
func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease") // elsewhere there is none
	release, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
	return release
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // elsewhere there is none
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

func version(ctx context.Context, name, flag string) string {
	out, err := exec.CommandContext(ctx, name, flag).CombinedOutput()
	if err != nil {
		return ""
	}
	for _, word := range strings.Fields(string(out)) {
		for _, prefix := range []string{"v=", "nginx/"} {
			if v, found := strings.CutPrefix(word, prefix); found {
				return name + " " + v
			}
		}
	}
	return name
}

func installed(versions ...string) []string {
	var out []string
	for _, v := range versions {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

// gigabytes rewrites "1048576 kB".
func gigabytes(kb string) string {
	n, err := strconv.ParseFloat(strings.TrimSuffix(kb, " kB"), 64)
	if err != nil {
		return kb
	}
	return fmt.Sprintf("%.0f GB", n/(1<<20))
}
