package limit

import (
	"testing"
	"time"
)

// TestPeriods: days and months are those of the calendar in UTC, whatever the zone of the clock and the length of the month.
func TestPeriods(t *testing.T) {
	west := time.FixedZone("west", -8*3600)
	for _, c := range []struct {
		period     string
		now        time.Time
		begin, end string
	}{
		{"day", time.Date(2026, 3, 29, 23, 30, 0, 0, west), "2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"24h", time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC), "2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"month", time.Date(2026, 1, 31, 23, 30, 0, 0, west), "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"month", time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC), "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"month", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"30d", time.Date(1970, 1, 31, 5, 0, 0, 0, time.UTC), "1970-01-31T00:00:00Z", "1970-03-02T00:00:00Z"},
		{"90m", time.Date(1970, 1, 1, 2, 0, 0, 0, time.UTC), "1970-01-01T01:30:00Z", "1970-01-01T03:00:00Z"},
	} {
		p, err := ParsePeriod(c.period)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := p.Bounds(c.now)
		if b, e := begin.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano); b != c.begin || e != c.end {
			t.Errorf("%s at %s: %s to %s", c.period, c.now, b, e)
		}
		if again, err := ParsePeriod(p.String()); err != nil || again != p {
			t.Errorf("%s is written as %s: %v", c.period, p, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "99999d", "months", "Day", "30", "30d12h"} {
		if p, err := ParsePeriod(text); err == nil {
			t.Errorf("%q is %s", text, p)
		}
	}
}
