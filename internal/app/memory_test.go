package app

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// TestLimitMemory: the control group's limit is kept to, unless GOMEMLIMIT says something else, which may be that there is none.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	group := memlimit.Limit(1_000_000_000)
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for _, f := range []struct {
		env         string
		group       memlimit.Provider
		limit, want int64
	}{
		{"", group, math.MaxInt64, 900_000_000}, {"off", group, math.MaxInt64, math.MaxInt64}, {"2GiB", group, 2 << 30, 2 << 30},
		{"", none, math.MaxInt64, math.MaxInt64}, {"", memlimit.Limit(0), math.MaxInt64, math.MaxInt64},
		{"", memlimit.Limit(math.MaxUint64), math.MaxInt64, math.MaxInt64},
	} {
		t.Setenv("GOMEMLIMIT", f.env)
		debug.SetMemoryLimit(f.limit) // as the runtime does with the variable
		limitMemory(f.group, &config.Config{}, zap.NewNop())
		if got := debug.SetMemoryLimit(-1); got != f.want {
			t.Errorf("GOMEMLIMIT=%s: %d, want %d", f.env, got, f.want)
		}
	}
}
