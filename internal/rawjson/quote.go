package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// AppendUnquote decodes the inside of a string. A lone surrogate becomes U+FFFD; then exact is false, since other strings decode
// to the same text. In a string that has not been validated, an unknown escape stays as it is.
func AppendUnquote(dst, inner []byte) (text []byte, exact bool) {
	exact = true
	for {
		at := bytes.IndexByte(inner, '\\')
		if at < 0 {
			return append(dst, inner...), exact
		}
		r, n, ok := unescape(inner[at:])
		dst, inner = utf8.AppendRune(append(dst, inner[:at]...), r), inner[at+n:]
		exact = exact && ok
	}
}

// AppendCanonical re-encodes the inside of a string that has been validated, as AppendQuote would encode its text. Lone
// surrogates remain escapes, in lower case. A string whose Escapes are Plain or Short is appended unchanged.
func AppendCanonical(dst, inner []byte) []byte {
	for {
		at := bytes.IndexByte(inner, '\\')
		if at < 0 {
			return append(dst, inner...)
		}
		dst, inner = append(dst, inner[:at]...), inner[at:]
		r, n, ok := unescape(inner)
		if ok {
			dst = appendRune(dst, r)
		} else {
			dst = append(dst, bytes.ToLower(inner[:n])...) // \uXXXX
		}
		inner = inner[n:]
	}
}

// unescape decodes the escape at the start of b, and returns its length. A lone surrogate gives U+FFFD and false. Of an unknown
// escape, only the backslash is taken.
func unescape(b []byte) (r rune, n int, ok bool) {
	if len(b) < 2 || strings.IndexByte(`"/\bfnrtu`, b[1]) < 0 {
		return '\\', 1, false
	}
	if b[1] == 'u' {
		return unescapeUnit(b)
	}
	if i := strings.IndexByte(letters, b[1]); i >= 0 {
		return rune(controls[i]), 2, true
	}
	return rune(b[1]), 2, true
}

// Control characters with a short escape, and the letters of those escapes.
const (
	controls = "\b\f\n\r\t"
	letters  = "bfnrt"
)

// unescapeUnit decodes \uXXXX, or a surrogate pair of them.
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

// AppendQuote encodes s as a JSON string, including the quotes. It escapes only quotes, backslashes and control characters.
// Each byte that is not valid UTF-8 becomes U+FFFD.
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

// appendRune encodes one character of a string.
func appendRune(dst []byte, r rune) []byte {
	if r == '"' || r == '\\' {
		return append(dst, '\\', byte(r))
	}
	if i := strings.IndexRune(controls, r); i >= 0 {
		return append(dst, '\\', letters[i])
	}
	if r < ' ' {
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

const hexDigits = "0123456789abcdef"
