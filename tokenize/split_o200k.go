package tokenize

import "unicode/utf8"

// The two overlapping sets of o200k_base's words.
const (
	upperSet = upper | caseless | mark
	lowerSet = lower | caseless | mark
)

// splitO200k is o200k_base's pattern, which is, an alternative a line, with U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and
// L for [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
//
//	[^\r\n\p{L}\p{N}]?U*L+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?U+L*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+ , \s+(?!\S) , \s+
func splitO200k(c *classes, text string, i int) int {
	first, size := c.at(text, i)
	next := i + size
	switch {
	case first&letter != 0:
		end, _ := word(c, text, i)
		return end + contraction(text, end)
	case first == number:
		return digits(c, text, i)
	case first == newline:
		return blanks(c, text, i)
	}
	second, _ := c.at(text, next)
	switch {
	case second&(letter|mark) != 0:
		return prefixed(c, text, first, next)
	case first == mark:
		return next + contraction(text, next)
	case first == blank && (text[i] != ' ' || second != symbol):
		return blanks(c, text, i)
	}
	return lineEnds(text, c.run(text, next, symbol|mark))
}

// prefixed is the word at next behind its optional first rune. A mark is in U and L itself: where the first alternative
// fails behind it, it matches the mark alone before the second alternative is asked.
func prefixed(c *classes, text string, first class, next int) int {
	end, second := word(c, text, next)
	if second && first == mark {
		return next
	}
	return end + contraction(text, end)
}

// word is the first two alternatives from a letter or mark on, without what is optional at both ends; second says that
// only the second of them matches.
//
// A run of U is followed either by a lower-case letter, and then L goes on from there; or by a rune of neither set, and
// then L+ needs a rune of both sets, so U* gives back all behind the last such rune. Where the run has none, only the
// second alternative matches: it takes the run. What was given back is such a run, and the next match takes it whole;
// so no rune is read more than three times.
func word(c *classes, text string, i int) (end int, second bool) {
	run, both := uppers(c, text, i)
	end = c.run(text, run, lowerSet)
	switch {
	case end > run:
		return end, false
	case both > i:
		return both, false
	}
	return run, true
}

// uppers reads a run of U: its end, and the end of the last rune in it that is in L too (i if there is none).
func uppers(c *classes, text string, i int) (end, both int) {
	for both = i; i < len(text); {
		b := text[i]
		if b < utf8.RuneSelf {
			if c.ascii[b] != upper {
				break
			}
			i++
			continue
		}
		found, size := c.wide(text[i:])
		if found&upperSet == 0 {
			break
		}
		i += size
		if found != upper {
			both = i
		}
	}
	return i, both
}

// lineEnds is [\r\n/]*.
func lineEnds(text string, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || text[i] == '/') {
		i++
	}
	return i
}
