package limit

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes, written as "64MiB" or as a plain number.
type Bytes int64

// byteUnits lists longer names first, since all of them end in "B".
var byteUnits = []struct {
	name string
	size int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

// ParseBytes parses a whole number of bytes with an optional unit: B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers
// of 1024), in any case.
func ParseBytes(text string) (Bytes, error) {
	number, size := strings.TrimSpace(text), int64(1)
	for _, unit := range byteUnits {
		if at := len(number) - len(unit.name); at >= 0 && strings.EqualFold(number[at:], unit.name) {
			number, size = strings.TrimSpace(number[:at]), unit.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, errors.New("is not a size: write it as 64MiB or as a whole number of bytes")
	}
	if n > math.MaxInt64/size || n < math.MinInt64/size {
		return 0, errors.New("is too large: write a size below 8 EiB")
	}
	return Bytes(n * size), nil
}

// String formats the size with the largest binary unit that divides it, so that ParseBytes returns the same size.
func (b Bytes) String() string {
	n := int64(b)
	for _, unit := range byteUnits {
		binary := strings.HasSuffix(unit.name, "iB")
		if binary && n != 0 && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
