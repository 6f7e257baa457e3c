package account

import (
	"fmt"
	"strings"
)

// perUSD is how many units of money a dollar has.
const perUSD = 1_000_000_000

// USD writes an amount in billionths of a dollar in dollars, exactly.
func USD(nano int64) string {
	sign, n := "", uint64(nano) //nolint:gosec // see below
	if nano < 0 {
		sign, n = "-", -n // also of the least integer
	}
	text := fmt.Sprintf("%s%d.%09d", sign, n/perUSD, n%perUSD)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
