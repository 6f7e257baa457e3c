//go:build !linux

package bench

import "time"

// What other processes use is read from Linux's /proc only; elsewhere these figures are 0.

func cpuTime([]int) time.Duration { return 0 }

func memory([]int) (now, peak int64) { return 0, 0 }

func forgetPeak([]int) {}

func diskWrites(int) int64 { return 0 }

func children(int) []int { return nil }
