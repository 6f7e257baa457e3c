package ground

import (
	"math"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// wanted is what the claims of a record ask for, and which of it was found. Its size depends on the record alone.
type wanted struct {
	words    map[uint64]bool  // hashes of words and of pairs of words: whether they were found
	integers map[uint64]bool  // integers: whether they were found
	ranges   []*bounds        // of rounded numbers
	derived  map[float64]bool // numbers that are a sum somewhere in the record
	prefixes map[int]bool     // lengths of the hashes that may be abbreviated, in bytes
}

// bounds is a range of values, and whether a number in it was found.
type bounds struct {
	low, high float64
	found     bool
}

// maxEscapes is how many times a text may have been escaped.
const maxEscapes = 3

// find looks in a text for what is wanted.
func (w *wanted) find(text string) {
	for range maxEscapes {
		w.read(text)
		plain := unescape(text)
		if plain == text {
			return
		}
		text = plain
	}
	w.read(text)
}

// unescape resolves the escapes of JSON in a text. Without any it returns the same text.
func unescape(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain, _ := rawjson.AppendUnquote(make([]byte, 0, len(text)), []byte(text))
	return string(plain)
}

// read marks what occurs in a text.
func (w *wanted) read(text string) {
	last := uint64(0)
	words(text, func(t word) {
		w.mark(t.hash)
		w.mark(pairOf(last, t.hash))
		last = t.hash
		if !t.foreign {
			w.readPrefixes(text[t.from:t.to])
			w.readNumbers(text, t)
		}
	})
}

func (w *wanted) mark(hash uint64) {
	if found, known := w.words[hash]; known && !found {
		w.words[hash] = true
	}
}

// readPrefixes marks the abbreviations of a hash.
func (w *wanted) readPrefixes(text string) {
	if len(w.prefixes) == 0 || len(text) < minHash || !isHash(text) {
		return
	}
	hash := uint64(hashOffset)
	for i := range len(text) {
		hash = mix(hash, rune(text[i]|0x20))
		if w.prefixes[i+1] {
			w.mark(prefixOf(hash))
		}
	}
}

// readNumbers marks the numbers that begin in a word.
func (w *wanted) readNumbers(text string, t word) {
	for i := t.from; i < t.to; {
		if !isDigit(text[i]) {
			i++
			continue
		}
		end := digitsFrom(text, i)
		n := numberAt(text, i)
		w.markNumber(n.value, n.scale)
		if n.to != end {
			w.markNumber(numberAt(text[:end], i).value, 0)
		}
		i = end
	}
}

// markNumber marks the integers that a number is rounded to, and the ranges that it is in.
func (w *wanted) markNumber(value float64, scale int) {
	for _, v := range [...]float64{value, value * math.Pow(1000, float64(scale))} {
		for _, integer := range [...]float64{math.Floor(v), math.Round(v)} {
			if found, known := w.integers[uint64(integer)]; known && !found {
				w.integers[uint64(integer)] = true
			}
		}
		for _, r := range w.ranges {
			r.found = r.found || r.low <= v && v <= r.high
		}
	}
}
