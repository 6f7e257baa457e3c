package figures_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/figures"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -123_456: "-123,456", 787_500: "787,500", 1_234_567: "1,234,567"} {
		if got := figures.Grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 99_940: "99.9 KB", 123_456: "123 KB", 999_960: "1.0 MB", 4.9e12: "4.9 TB", 4.9e15: "4900 TB"} {
		if got := figures.Bytes(n); got != want {
			t.Errorf("%g: %s, want %s", n, got, want)
		}
	}
}
