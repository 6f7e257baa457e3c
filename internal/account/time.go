package account

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a time: a day in UTC, such as 2026-11-30, a time in RFC 3339 format, or how long ago it was, such as 7d or 12h.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range [...]string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is no time: give a day such as 2006-01-02, or how long ago it was, such as 7d or 12h", text)
}
