// Package figures writes numbers for people.
package figures

import "strconv"

// Grouped writes a number with commas between thousands.
func Grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
