package limit

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Period is how long a budget lasts until the next one begins. Periods are counted from 1970 in UTC, so that those of a day begin at midnight.
type Period time.Duration

// Periods that have a name. A Month is one of the calendar, in UTC.
const (
	Day   Period = Period(24 * time.Hour)
	Month Period = math.MaxInt64
)

// ParsePeriod parses day, month, a number of days such as 30d, or a duration such as 12h.
func ParsePeriod(text string) (Period, error) {
	switch text {
	case "day":
		return Day, nil
	case "month":
		return Month, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil { // so that it cannot overflow
			return Period(n) * Day, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || Period(d) == Month {
		return 0, errors.New("is not a period: write it as day, month, 30d or 12h")
	}
	return Period(d), nil
}

// String returns the period as ParsePeriod takes it.
func (p Period) String() string {
	switch {
	case p == Month:
		return "month"
	case p == Day:
		return "day"
	case p > Day && p%Day == 0:
		return strconv.FormatInt(int64(p/Day), 10) + "d"
	}
	return time.Duration(p).String()
}

// Bounds returns the beginning and the end of the period that contains now. The period must be positive.
func (p Period) Bounds(now time.Time) (begin, end time.Time) {
	now = now.UTC()
	if p == Month {
		begin = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		return begin, begin.AddDate(0, 1, 0)
	}
	begin = now.Add(-time.Duration(now.UnixNano() % int64(p)))
	return begin, begin.Add(time.Duration(p))
}
