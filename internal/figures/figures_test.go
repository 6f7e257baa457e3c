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
