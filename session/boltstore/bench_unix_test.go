//go:build unix

package boltstore

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkPacedAppend appends once per millisecond, like a proxy under normal load. The result that matters is cpu-ns/op.
func BenchmarkPacedAppend(b *testing.B) {
	s, at := start(b, Options{Content: true}), 0
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	before := cpu(b)
	for b.Loop() {
		<-tick.C
		must(b, s.Append(b.Context(), twoEvents("t", at)))
		at += 2
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
