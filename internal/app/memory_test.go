package app

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

func TestMemoryLimit(t *testing.T) {
	f := func(name string, files map[string]string, want int64) {
		t.Helper()
		root := fstest.MapFS{}
		for path, text := range files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memoryLimit(root); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	f("nothing there", nil, 0)
	f("a container's own root", map[string]string{"proc/self/cgroup": "0::/\n", v2 + "memory.max": "536870912\n"}, 512<<20)
	f("no limit", map[string]string{"proc/self/cgroup": "0::/\n", v2 + "memory.max": "max\n"}, 0)
	f("a service", map[string]string{
		"proc/self/cgroup": "0::/system.slice/dewpoint.service\n", v2 + "system.slice/memory.max": "max\n",
		v2 + "system.slice/dewpoint.service/memory.max": "1073741824\n",
	}, 1<<30)
	f("a group above has less", map[string]string{
		"proc/self/cgroup": "0::/pod/box\n", v2 + "pod/memory.max": "268435456\n", v2 + "pod/box/memory.max": "1073741824\n",
	}, 256<<20)
	f("the host's path in a container", map[string]string{
		"proc/self/cgroup": "0::/../../kubepods/pod/box\n", v2 + "memory.max": "268435456\n",
	}, 256<<20)
	f("version 1", map[string]string{
		"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/box\n0::/\n", v1 + "docker/box/memory.limit_in_bytes": "134217728\n",
		v1 + "memory.limit_in_bytes": "9223372036854771712\n",
	}, 128<<20)
	f("version 1, only the mount's root", map[string]string{
		"proc/self/cgroup": "4:memory:/docker/box\n", v1 + "memory.limit_in_bytes": "134217728\n",
	}, 128<<20)
	f("version 1 without a limit", map[string]string{
		"proc/self/cgroup": "4:memory:/\n", v1 + "memory.limit_in_bytes": "9223372036854771712\n",
	}, 0)
	f("not a number", map[string]string{"proc/self/cgroup": "0::/\nodd\n", v2 + "memory.max": "much\n"}, 0)
}

// TestLimitMemory: the control group's limit is kept to, unless GOMEMLIMIT says something else, which may be that there is none.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	root := fstest.MapFS{
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("1000000000\n")},
	}
	for _, f := range []struct {
		env         string
		limit, want int64
	}{{"", math.MaxInt64, 900_000_000}, {"off", math.MaxInt64, math.MaxInt64}, {"2GiB", 2 << 30, 2 << 30}} {
		t.Setenv("GOMEMLIMIT", f.env)
		debug.SetMemoryLimit(f.limit) // as the runtime does with the variable
		limitMemory(root, &config.Config{}, zap.NewNop())
		if got := debug.SetMemoryLimit(-1); got != f.want {
			t.Errorf("GOMEMLIMIT=%s: %d, want %d", f.env, got, f.want)
		}
	}
}
