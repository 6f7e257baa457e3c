package ground

import (
	"math"
	"strconv"
	"strings"
)

// number is a number in a text.
type number struct {
	value     float64
	half      float64 // half of its last digit's unit
	scale     int     // thousands that its unit stands for, as a power: 1 for k, 2 for M
	grouped   bool    // its thousands are separated
	from, to  int     // where its digits stand
	end       int     // where its unit ends
	precise   bool    // an integer without a unit
	followed  bool    // a letter follows that is no unit: it is part of a word
	percent   bool
	measured  bool // its unit is one of data or of frequency
	openEnded bool // a plus follows
}

// maxDigits is the length from which a run of digits is an id instead of a number.
const maxDigits = 15

// maxGroups bounds the groups of thousands of a number.
const maxGroups = 4

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func digitsFrom(text string, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

// numberAt reads the number whose first digit is at i, with its groups and decimals, and its unit.
func numberAt(text string, i int) number {
	n := number{from: i, to: digitsFrom(text, i), half: 0.5, precise: true}
	digits := text[i:n.to]
	for range maxGroups {
		end := digitsFrom(text, min(n.to+1, len(text)))
		if n.to >= len(text) || len(text[i:n.to]) > 3 && !n.grouped || end-n.to != 4 || strings.IndexByte(",_'", text[n.to]) < 0 {
			break
		}
		digits += text[n.to+1 : end]
		n.to, n.grouped = end, true
	}
	if n.to+1 < len(text) && text[n.to] == '.' && isDigit(text[n.to+1]) {
		end := digitsFrom(text, n.to+1)
		digits += text[n.to:end]
		n.half = 0.5 * math.Pow10(n.to+1-end)
		n.to, n.precise = end, false
	}
	n.value, _ = strconv.ParseFloat(digits[:min(len(digits), 2*maxDigits)], 64)
	n.readUnit(text)
	return n
}

// readUnit reads what follows the digits.
func (n *number) readUnit(text string) {
	i := n.to
	n.end = i
	if i < len(text) && text[i] == ' ' {
		i++
	}
	end := i
	for end < len(text) && end < i+maxUnit && (text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z') {
		end++
	}
	scale, known := scaleOf(text[i:end])
	switch {
	case known:
		n.scale, n.end = scale, end
		n.measured = end > i+1 && strings.IndexByte("bBz", text[end-1]) >= 0
		n.precise = n.precise && scale == 0
	case i == n.to && end > i:
		n.followed = true
	}
	if n.end < len(text) {
		n.percent = text[n.end] == '%'
		n.openEnded = text[n.end] == '+'
	}
	n.followed = n.followed || n.end == n.to && n.to < len(text) && text[n.to] == '_'
}

// maxUnit is the maximum length of a unit.
const maxUnit = 8

// scaleOf returns the thousands that a unit stands for. It reports false if the text is no unit.
func scaleOf(unit string) (scale int, known bool) {
	switch strings.ToLower(unit) {
	case "s", "ms", "us", "ns", "min", "mins", "h", "hrs", "d", "px", "x", "b", "th", "st", "nd", "rd", "pt", "em", "w", "v", "a", "hz":
		return 0, true
	case "k", "kb", "kib", "khz", "thousand":
		return 1, true
	case "m", "mb", "mib", "mhz", "million", "mio":
		return 2, true
	case "g", "gb", "gib", "ghz", "billion":
		return 3, true
	}
	return 0, false
}

// bounds returns the values that the number may stand for, rounded.
func (n *number) bounds() (low, high float64) {
	return (n.value - n.half) * math.Pow(1000, float64(n.scale)), (n.value + n.half) * math.Pow(1024, float64(n.scale))
}
