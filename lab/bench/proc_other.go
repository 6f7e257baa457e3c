//go:build !linux

package bench

import "time"

// What other processes use is read from Linux's /proc only; elsewhere these figures are 0.

func (t *Target) cpu() time.Duration { return 0 }

func (t *Target) memory() (now, peak int64) { return 0, 0 }

func (t *Target) forgetPeak() {}

func children(int) []int { return nil }
