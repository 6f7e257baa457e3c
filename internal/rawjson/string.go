package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops sets the high bit of the first of eight bytes that is not plain ASCII text: a quote, a backslash, a control
// character or a byte above 0x7f. Bytes after the first may be marked wrongly, since the subtractions borrow. See
// "Determine if a word has a byte less than n" in S. E. Anderson, Bit Twiddling Hacks.
func stops(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((w - ones*' ') | (quote - ones) | (slash - ones) | w) & highs
}

// skipPlain returns the index of the first byte from i on that is not plain ASCII text, or len(data).
func skipPlain(data []byte, i int) int {
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

// text validates the string at i.
func (s *Scanner) text(i int) (end int, escapes Escapes) {
	data := s.data
	i++ // the opening quote
	for {
		i = skipPlain(data, i)
		if i >= len(data) {
			return s.fail(Truncated, i), Plain
		}
		c := data[i]
		switch {
		case c == '"':
			return i + 1, escapes
		case c == '\\' && i+1 < len(data) && isShort(data[i+1]):
			escapes = max(escapes, Short)
			i += 2
		case c == '\\':
			n := longEscape(data[i:])
			if n == 0 {
				return s.fail(BadEscape, i), Plain
			}
			escapes = Long
			i += n
		case c < ' ':
			return s.fail(Control, i), Plain
		}
		for i < len(data) && data[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n <= 1 {
				return s.fail(BadUTF8, i), Plain
			}
			i += n
		}
	}
}

// isShort reports whether a backslash followed by c is a Short escape.
func isShort(c byte) bool {
	const letters = 1<<('\\'-64) | 1<<('b'-64) | 1<<('f'-64) | 1<<('n'-64) | 1<<('r'-64) | 1<<('t'-64)
	return c == '"' || c&0xC0 == 64 && uint64(letters)>>(c&63)&1 != 0
}

// longEscape returns the length of the Long escape at the start of b, or 0 if there is none.
func longEscape(b []byte) int {
	if len(b) > 1 && b[1] == '/' {
		return 2
	}
	if _, ok := hex4(b); ok {
		return 6
	}
	return 0
}

// hex4 returns the code unit of the \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var unit [2]byte
	_, err := hex.Decode(unit[:], b[2:6])
	return rune(unit[0])<<8 | rune(unit[1]), err == nil
}

// MayHold reports whether a string of a JSON text may contain s: the text contains s itself, or an escape that may stand for a character of s.
// It is a quick test before the text is read: if it returns false, no string contains s. The characters of s must have no short escapes, like
// letters and digits.
func MayHold(text []byte, s string) bool {
	if bytes.Contains(text, []byte(s)) {
		return true
	}
	const escape, digits = `\u00`, 2
	for {
		at := bytes.Index(text, []byte(escape))
		if at < 0 || len(text) < at+len(escape)+digits {
			return false
		}
		text = text[at+len(escape):]
		if c, err := strconv.ParseUint(string(text[:digits]), 16, 8); err == nil && strings.IndexByte(s, byte(c)) >= 0 {
			return true
		}
	}
}
