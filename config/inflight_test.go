package config

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

func TestInFlight(t *testing.T) {
	f := func(set, maxBody limit.Bytes, memory int64, want limit.Bytes) {
		t.Helper()
		if got := (Limits{BytesInFlight: set, MaxBody: maxBody}).InFlight(memory); got != want {
			t.Errorf("of %d bytes of memory: %d, want %d", memory, got, want)
		}
	}
	f(0, 64<<20, 0, 512<<20)
	f(0, 64<<20, 8<<30, 512<<20)
	f(0, 64<<20, 512<<20, 128<<20)
	f(0, 64<<20, 128<<20, 64<<20) // one request must fit
	f(0, 1<<30, 0, 1<<30)
	f(700<<20, 64<<20, 512<<20, 700<<20)
}
