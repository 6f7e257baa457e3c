package ui

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/figures"
)

// tokens writes a number of tokens, rounded: 812, 16.9k, 61.4 M, 1.2 bn.
func tokens(n int) string {
	const thousand, million, billion = 1_000, 1_000_000, 1_000_000_000
	switch abs := max(n, -n); {
	case abs < thousand:
		return fmt.Sprint(n)
	case abs < 99_950 && n%thousand != 0:
		return fmt.Sprintf("%.1fk", float64(n)/thousand)
	case abs < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/thousand)
	case abs < 999_950_000:
		return fmt.Sprintf("%.1f M", float64(n)/million)
	}
	return fmt.Sprintf("%.1f bn", float64(n)/billion)
}

// count writes a whole number with commas between thousands.
func count(n int) string { return figures.Grouped(n) }

// size writes a number of bytes.
func size(n int) string {
	const kb = 1 << 10
	switch {
	case n < kb:
		return plural(n, "byte")
	case n < kb*kb:
		return fmt.Sprintf("%.1f KB", float64(n)/kb)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/kb/kb)
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 || n == -1 {
		return count(n) + " " + noun
	}
	if strings.HasSuffix(noun, "y") {
		return count(n) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return count(n) + " " + noun + "s"
}

// when writes a time with its day, in UTC.
func when(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006, 15:04")
}

// clock writes the time of a day, in UTC.
func clock(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("15:04:05")
}

// usd writes an amount of money. Small amounts get more digits, so that they are not all 0.00.
func usd(v float64) string {
	switch abs := max(v, -v); {
	case abs == 0:
		return "0.00 USD"
	case abs < 0.0001:
		return fmt.Sprintf("%.6f USD", v)
	case abs < 0.1:
		return fmt.Sprintf("%.4f USD", v)
	}
	const cents, thousand = 100, 1000
	if max(v, -v) < thousand {
		return fmt.Sprintf("%.2f USD", v)
	}
	whole := int64(math.Round(v * cents))
	return fmt.Sprintf("%s.%02d USD", count(int(whole/cents)), max(whole, -whole)%cents)
}

// Plural writes a number with its noun.
func Plural(n int, noun string) string { return plural(n, noun) }

// When writes a time with its day, in UTC.
func When(t time.Time) string { return when(t) }

// Tokens writes a number of tokens, rounded.
func Tokens(n int) string { return tokens(n) }

// USD writes an amount of money.
func USD(v float64) string { return usd(v) }
