package app

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// heapShare is the part of a container's memory that Go's heap is told to stay below; the rest is for what Go does not
// count, the pages of the store's file above all.
const heapShare = 0.9

// LimitMemory tells Go how much memory its control group allows, unless GOMEMLIMIT has told it already, and says so in
// the log. It has an effect on the whole process: call it once.
func LimitMemory(cfg *config.Config, log *zap.Logger) { limitMemory(memlimit.FromCgroup, cfg, log) }

func limitMemory(group memlimit.Provider, cfg *config.Config, log *zap.Logger) {
	limit, from := memory(), "GOMEMLIMIT"
	if limit == 0 {
		if os.Getenv("GOMEMLIMIT") == "off" {
			return
		}
		allowed, err := group()
		if err != nil || allowed == 0 || allowed >= math.MaxInt64 {
			return // no limit, or no control groups
		}
		limit, from = int64(allowed), "control group"
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
