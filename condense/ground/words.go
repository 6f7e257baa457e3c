package ground

import (
	"unicode"
	"unicode/utf8"
)

// word is a word of a text: letters, digits and underscores.
type word struct {
	hash     uint64 // of its letters in lower case, without a plural's "s"
	from, to int    // where it stands
	foreign  bool   // its script writes no spaces between words, or adds to words what others write apart: it cannot be compared
}

// Classes of characters.
const (
	apart   = iota // between words
	plain          // part of a word: ASCII letters, digits, underscores, and other Latin letters
	foreign        // a letter of another script
)

// classOf returns the class of the character at i, in lower case, and its length in bytes.
func classOf(text string, i int) (class int, lower rune, size int) {
	c := text[i]
	switch {
	case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_':
		return plain, rune(c), 1
	case 'A' <= c && c <= 'Z':
		return plain, rune(c) + 'a' - 'A', 1
	case c < utf8.RuneSelf:
		return apart, rune(c), 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	switch {
	case unicode.Is(unicode.Latin, r) || unicode.Is(unicode.Mn, r):
		return plain, unicode.ToLower(r), size
	case unicode.IsLetter(r):
		return foreign, unicode.ToLower(r), size
	}
	return apart, r, size
}

// Constants of the hash FNV-1a.
const (
	hashOffset = 14695981039346656037
	hashPrime  = 1099511628211
)

func mix(hash uint64, r rune) uint64 { return (hash ^ uint64(uint32(r))) * hashPrime } //nolint:gosec // no rune is negative

// pairOf returns the hash that stands for two words next to each other.
func pairOf(a, b uint64) uint64 { return mix(mix(a, ' ')^b, ' ') }

// minPlural is the length from which an "s" at the end of a word is left out, in characters.
const minPlural = 4

// next returns the first word of text at or after i. It reports false if there is none.
func next(text string, i int) (w word, ok bool) {
	class, lower, size := apart, rune(0), 0
	for ; i < len(text); i += size {
		if class, lower, size = classOf(text, i); class != apart {
			break
		}
	}
	if class == apart {
		return w, false
	}
	w = word{hash: hashOffset, from: i, foreign: class == foreign}
	length := 0
	for c := class; c == class; length++ {
		before := w.hash
		w.hash = mix(w.hash, lower)
		i += size
		last := lower
		if i == len(text) {
			c = apart
		} else {
			c, lower, size = classOf(text, i)
		}
		if c != class && last == 's' && length+1 >= minPlural {
			w.hash = before
		}
	}
	w.to = i
	return w, true
}

// words calls f for each word of a text.
func words(text string, f func(word)) {
	for i := 0; ; {
		w, ok := next(text, i)
		if !ok {
			return
		}
		f(w)
		i = w.to
	}
}
