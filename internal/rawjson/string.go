package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops marks, with its high bit, the first of eight bytes that is not plain ASCII text of a string: a quote, a
// backslash, a control character or a byte above 0x7f. Bytes after the first may be marked wrongly, since the
// subtractions borrow; see "Determine if a word has a byte less than n" in S. E. Anderson, Bit Twiddling Hacks.
func stops(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((w - ones*' ') | (quote - ones) | (slash - ones) | w) & highs
}

// plain is the index of the first byte from i on at which a string's plain text stops, or len(data).
func plain(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		if m := stops(binary.LittleEndian.Uint64(data[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] < utf8.RuneSelf && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// scanString reads on from i, the first byte after the opening quote, and gives the index after the closing one. With a
// code, the index is that of the defect.
func scanString(data []byte, i int) (end int, escapes Escapes, code Code) {
	for {
		if i = plain(data, i); i >= len(data) {
			return i, escapes, Truncated
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, escapes, ""
		case c == '\\' && i+1 < len(data) && short(data[i+1]):
			escapes = max(escapes, Short)
			i += 2
		case c == '\\':
			n := scanLong(data[i:])
			if n == 0 {
				return i, escapes, BadEscape
			}
			escapes = Long
			i += n
		case c < ' ':
			return i, escapes, Control
		default:
			if i, code = scanRunes(data, i); code != "" {
				return i, escapes, code
			}
		}
	}
}

// short reports whether a backslash and c are a Short escape.
func short(c byte) bool {
	const letters = 1<<('\\'-64) | 1<<('b'-64) | 1<<('f'-64) | 1<<('n'-64) | 1<<('r'-64) | 1<<('t'-64)
	return c == '"' || c&0xC0 == 64 && uint64(letters)>>(c&63)&1 != 0
}

// scanRunes goes over the run of non-ASCII characters at i.
func scanRunes(data []byte, i int) (int, Code) {
	for i < len(data) && data[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i, BadUTF8
		}
		i += n
	}
	return i, ""
}

// scanLong gives the length of the Long escape that b begins with, 0 if it is none.
func scanLong(b []byte) int {
	if len(b) > 1 && b[1] == '/' {
		return 2
	}
	if _, ok := hex4(b); ok {
		return 6
	}
	return 0
}

// hex4 is the code unit of the \uXXXX that b begins with.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
