package limit

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1": 1, "64MiB": 64 << 20, "64mib": 64 << 20, " 64 MiB ": 64 << 20, "1kB": 1000, "1KB": 1000, "2MB": 2e6, "3GB": 3e9,
		"1GiB": 1 << 30, "12B": 12, "-5KiB": -5 << 10, "8589934591GiB": (1<<33 - 1) << 30,
	} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "1.5GiB", "64M", "1 2", "0x10", "8589934592GiB", "-8589934593GiB", "99999999999999999999", "1TiB", "MiB64"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d", text, got)
		}
	}
}

func TestBytesRoundTrip(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		size := Bytes(rapid.Int64().Draw(rt, "n")) << rapid.SampledFrom([]uint{0, 10, 20, 30}).Draw(rt, "shift")
		if got, err := ParseBytes(size.String()); got != size || err != nil {
			rt.Errorf("ParseBytes(%q) = %d, %v; want %d", size.String(), got, err, size)
		}
	})
}
