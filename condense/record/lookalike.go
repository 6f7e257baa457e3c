package record

import "unicode/utf8"

// lookalikes are characters that read as an ASCII one: a model may take them for it, though no parser does. They are
// those of Unicode's confusables (UTS 39) that the delimiters and the names of roles need.
var lookalikes = map[rune]byte{
	'＜': '<', '﹤': '<', '❮': '<', '〈': '<', '⟨': '<', '˂': '<', 'ᐸ': '<', '𐒼': '<',
	'：': ':', '﹕': ':', '꞉': ':', '∶': ':', 'ː': ':', '։': ':',
	'／': '/', '⁄': '/', '∕': '/', '╱': '/', '⧸': '/',
	'а': 'a', 'ɑ': 'a', 'α': 'a', 'с': 'c', 'ϲ': 'c', 'ԁ': 'd', 'ⅾ': 'd', 'е': 'e', 'ҽ': 'e', 'ƒ': 'f', 'һ': 'h', 'і': 'i',
	'ı': 'i', 'ι': 'i', 'ӏ': 'l', 'ⅼ': 'l', 'ⅿ': 'm', 'м': 'm', 'п': 'n', 'ո': 'n', 'о': 'o', 'ο': 'o', 'р': 'p', 'ρ': 'p',
	'г': 'r', 'ѕ': 's', 'ſ': 's', 'т': 't', 'τ': 't', 'υ': 'u', 'ս': 'u', 'ѵ': 'v', 'ν': 'v', 'ѡ': 'w', 'ԝ': 'w', 'ω': 'w',
	'у': 'y', 'ү': 'y', 'А': 'a', 'С': 'c', 'Е': 'e', 'Н': 'h', 'І': 'i', 'М': 'm', 'Ν': 'n', 'О': 'o', 'Ο': 'o', 'Р': 'p',
	'Ѕ': 's', 'Т': 't', 'Τ': 't', 'Ѵ': 'v', 'Ԝ': 'w', 'У': 'y', 'Ε': 'e', 'Ρ': 'p', 'Ѡ': 'w', 'Ա': 'u',
}

// reads is the ASCII character, in lower case, that r reads as; otherwise r itself.
func reads(r rune) rune {
	if '！' <= r && r <= '～' { // the full-width forms of ASCII
		r -= '！' - '!'
	}
	if r >= utf8.RuneSelf {
		if c, ok := lookalikes[r]; ok {
			r = rune(c)
		}
	}
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// readsAs reports whether text begins with what reads as an ASCII word in lower case.
func readsAs(text, word string) bool {
	for i := range len(word) {
		r, size := utf8.DecodeRuneInString(text)
		if size == 0 || reads(r) != rune(word[i]) {
			return false
		}
		text = text[size:]
	}
	return true
}
