package console

import (
	"fmt"
	"math"
	"time"
)

// count returns a number of tokens in three digits: 812, 50.4k, 1.23M.
func count(n int) string {
	switch f := float64(n); {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 99_950:
		return fmt.Sprintf("%.1fk", f/1000)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", f/1000)
	default:
		return fmt.Sprintf("%.2fM", f/1_000_000)
	}
}

// dollars returns an amount in cents, or in tenths of a cent if it is small. The amount may be negative.
func dollars(usd float64) string {
	sign := ""
	if usd < 0 {
		sign, usd = "-", -usd
	}
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0005:
		return sign + "<$0.001"
	case usd < 0.0995:
		return fmt.Sprintf("%s$%.3f", sign, usd)
	default:
		return fmt.Sprintf("%s$%.2f", sign, usd)
	}
}

// percent returns the share of a part in a whole, rounded towards 0: 99.7% of a prompt is not all of it.
func percent(part, whole float64) string {
	if whole <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", int(math.Trunc(100*part/whole)))
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// rough returns a time in the unit that a person would use.
func rough(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}
