package rawjson

import (
	"bytes"
	"unicode/utf8"
)

// AppendUnquote decodes the inside of a string that a Scanner has passed. A surrogate escape without its other half
// becomes U+FFFD, and exact is false: then other strings decode to the same text.
func AppendUnquote(dst, inner []byte) (text []byte, exact bool) {
	exact = true
	for i := 0; i < len(inner); {
		from := i
		i = backslash(inner, i)
		dst = append(dst, inner[from:i]...)
		if i >= len(inner) {
			break
		}
		r, n, ok := unescape(inner[i:])
		dst, exact = utf8.AppendRune(dst, r), exact && ok
		i += n
	}
	return dst, exact
}

// AppendCanonical spells the inside of a string that a Scanner has passed in the one way that AppendQuote would. Lone
// surrogates stay escapes, in lower case. What has no escapes, or Short ones only, comes out as it is.
func AppendCanonical(dst, inner []byte) []byte {
	for i := 0; i < len(inner); {
		from := i
		i = backslash(inner, i)
		dst = append(dst, inner[from:i]...)
		if i >= len(inner) {
			break
		}
		r, n, ok := unescape(inner[i:])
		if ok {
			dst = appendRune(dst, r)
		} else {
			dst = appendUnit(dst, inner[i:i+n])
		}
		i += n
	}
	return dst
}

// backslash is the index of the next backslash from i on, or len(inner).
func backslash(inner []byte, i int) int {
	if n := bytes.IndexByte(inner[i:], '\\'); n >= 0 {
		return i + n
	}
	return len(inner)
}

// unescape decodes the escape that b begins with, which has n bytes. A lone surrogate gives U+FFFD and false.
func unescape(b []byte) (r rune, n int, ok bool) {
	if len(b) < 2 {
		return utf8.RuneError, len(b), false
	}
	switch b[1] {
	case 'b':
		return '\b', 2, true
	case 'f':
		return '\f', 2, true
	case 'n':
		return '\n', 2, true
	case 'r':
		return '\r', 2, true
	case 't':
		return '\t', 2, true
	case 'u':
		return unescapeUnit(b)
	}
	return rune(b[1]), 2, true
}

// unescapeUnit decodes \uXXXX, or a pair of them.
func unescapeUnit(b []byte) (r rune, n int, ok bool) {
	r, ok = hex4(b)
	switch {
	case !ok:
		return utf8.RuneError, min(2, len(b)), false
	case r < 0xD800 || r > 0xDFFF:
		return r, 6, true
	case r < 0xDC00:
		if low, pair := hex4(b[6:]); pair && 0xDC00 <= low && low <= 0xDFFF {
			return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12, true
		}
	}
	return utf8.RuneError, 6, false
}

// AppendQuote writes s as a JSON string, quotes included: valid UTF-8 stays as it is, only quotes, backslashes and
// control characters are escaped, and each byte that is not UTF-8 becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i, r := range s {
		if r >= ' ' && r != '"' && r != '\\' && r != utf8.RuneError {
			continue
		}
		dst = append(dst, s[from:i]...)
		dst = appendRune(dst, r)
		_, n := utf8.DecodeRuneInString(s[i:])
		from = i + n
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// appendRune writes one character of a string.
func appendRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r < ' ' {
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// appendUnit writes \uXXXX in lower case.
func appendUnit(dst, unit []byte) []byte {
	for _, c := range unit {
		if 'A' <= c && c <= 'F' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

const hexDigits = "0123456789abcdef"
