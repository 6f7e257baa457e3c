package app

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// heapShare is the part of a container's memory that Go's heap is told to stay below; the rest is for what Go does not
// count, the pages of the store's file above all.
const heapShare = 0.9

// LimitMemory tells Go how much memory its control group allows, unless GOMEMLIMIT has told it already, and says so in
// the log. The number of processors Go finds out by itself. It has an effect on the whole process: call it once.
func LimitMemory(cfg *config.Config, log *zap.Logger) { limitMemory(os.DirFS("/"), cfg, log) }

func limitMemory(root fs.FS, cfg *config.Config, log *zap.Logger) {
	limit, from := memory(), "GOMEMLIMIT"
	if limit == 0 {
		if os.Getenv("GOMEMLIMIT") == "off" {
			return // as somebody wants it
		}
		if limit = memoryLimit(root); limit == 0 {
			return
		}
		from = "control group"
		debug.SetMemoryLimit(int64(float64(limit) * heapShare))
	}
	log.Info("memory is limited", zap.String("by", from), zap.Int64("bytes", limit),
		zap.Int64("heap", memory()), zap.Int64("bytes_in_flight", int64(cfg.Limits.InFlight(memory()))))
}

// memory is what Go's heap is to stay below, in bytes; 0: it was not told.
func memory() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

// unlimited is what a control group of version 1 has for no limit: the largest number of pages.
const unlimited = math.MaxInt64 &^ (1<<16 - 1)

// memoryLimit is the least memory limit of the control groups that the process is in, in bytes; 0 if there is none. root
// is the file system.
func memoryLimit(root fs.FS) int64 {
	groups, err := root.Open("proc/self/cgroup")
	if err != nil {
		return 0
	}
	defer groups.Close()
	least := int64(0)
	for lines := bufio.NewScanner(groups); lines.Scan(); {
		// HIERARCHY:CONTROLLERS:PATH, see cgroups(7)
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[0] == "0" && fields[1] == "":
			least = lesser(least, groupLimit(root, "sys/fs/cgroup", fields[2], "memory.max"))
		case hasWord(fields[1], "memory"):
			least = lesser(least, groupLimit(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// groupLimit is the least limit of a group and those above it. In a container the path may be the host's, and only the
// mount's own root be there.
func groupLimit(root fs.FS, mount, group, file string) int64 {
	least := int64(0)
	for at := path.Join(mount, path.Clean("/"+group)); ; at = path.Dir(at) {
		least = lesser(least, readLimit(root, path.Join(at, file)))
		if at == mount {
			return least
		}
	}
}

// readLimit is the number in a file; 0 if it is not there or says that there is no limit.
func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n >= unlimited {
		return 0
	}
	return n
}

// lesser is the lesser of two limits; 0 is none.
func lesser(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func hasWord(list, word string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == word {
			return true
		}
	}
	return false
}
