// Package figures writes numbers for people.
package figures

import (
	"fmt"
	"strconv"
)

// Grouped writes a number with commas between thousands.
func Grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Bytes writes a size in the largest decimal unit of which it has at least one, up to TB.
func Bytes(n float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	at := 0
	for n >= 999.95 && at < len(units)-1 {
		n, at = n/1000, at+1
	}
	if at == 0 || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, units[at])
	}
	return fmt.Sprintf("%.1f %s", n, units[at])
}
