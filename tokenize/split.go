package tokenize

import "strings"

// splitter returns the end of the piece that starts at text[i], i < len(text). It implements one of OpenAI's splitting
// patterns, which match any text, so the end is always after i. The text must be valid UTF-8.
//
// The patterns are written for a backtracking engine: the first alternative that matches wins, each as long as possible.
// Dispatching on the first rune makes backtracking unnecessary.
type splitter func(c classes, text string, i int) int

// contraction returns the length of 's 't 're 've 'm 'll 'd, in either case, at text[i], or 0. Under case folding, U+017F
// (long s) is an s too.
func contraction(text string, i int) int {
	if i >= len(text) || text[i] != '\'' {
		return 0
	}
	rest := text[i+1 : min(i+3, len(text))]
	for _, ending := range [...]string{"s", "t", "m", "d", "re", "ve", "ll", "\u017F"} {
		if len(rest) >= len(ending) && strings.EqualFold(rest[:len(ending)], ending) {
			return 1 + len(ending)
		}
	}
	return 0
}

// digits matches \p{N}{1,3} at a number.
func digits(c classes, text string, i int) int {
	for range 3 {
		found, size := c.at(text, i)
		if found != number {
			break
		}
		i += size
	}
	return i
}

// blanks matches \s*[\r\n]+|\s+(?!\S)|\s+ at white space. It takes the run up to its last line end. In a run without a line end it
// takes everything at the end of the text, and otherwise all but the last rune, which belongs to the piece that follows, or
// the only rune.
//
// A run without a line end leaves one rune over, and what follows the last line end has no other. So each run is read at most
// three times.
func blanks(c classes, text string, i int) int {
	end, last, line := i, i, 0
	for {
		found, size := c.at(text, end)
		if found&space == 0 {
			break
		}
		last = end
		end += size
		if found == newline {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end == len(text) || last == i:
		return end
	}
	return last
}

// splitCl100k implements cl100k_base's pattern, here with one alternative per line:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+ , \s+(?!\S) , \s+
func splitCl100k(c classes, text string, i int) int {
	first, size := c.at(text, i)
	next := i + size
	switch {
	case first&letter != 0:
		return c.run(text, next, letter)
	case first == number:
		return digits(c, text, i)
	case first == newline:
		return blanks(c, text, i)
	}
	if n := contraction(text, i); n > 0 {
		return i + n
	}
	second, size := c.at(text, next)
	switch {
	case second&letter != 0:
		return c.run(text, next+size, letter)
	case first == blank && (text[i] != ' ' || second&(symbol|mark) == 0):
		return blanks(c, text, i)
	}
	return c.run(text, c.run(text, next, symbol|mark), newline)
}

// The two overlapping sets in o200k_base's patterns for words.
const (
	upperSet = upper | caseless | mark
	lowerSet = lower | caseless | mark
)

// splitO200k implements o200k_base's pattern, here with one alternative per line, and with U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
// and L for [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
//
//	[^\r\n\p{L}\p{N}]?U*L+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?U+L*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+ , \s+(?!\S) , \s+
func splitO200k(c classes, text string, i int) int {
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
	end := c.run(text, next, symbol|mark)
	return len(text) - len(strings.TrimLeft(text[end:], "\r\n/"))
}

// prefixed matches the word at next, after its optional first rune. A mark is itself in U and L: if the first alternative
// fails after it, that alternative matches the mark alone, before the second alternative is tried.
func prefixed(c classes, text string, first class, next int) int {
	end, second := word(c, text, next)
	if second && first == mark {
		return next
	}
	return end + contraction(text, end)
}

// word matches the first two alternatives at a letter or mark, without the optional parts at both ends. It sets second if
// only the second alternative matches.
//
// If a lower-case letter follows a run of U, L continues from there. If a rune of neither set follows, L+ needs a rune of both
// sets, so U* gives back everything after the last such rune. If the run has no such rune, only the second alternative
// matches, and takes the run. A part given back is a run of that kind, which the next match takes whole, so no rune is read
// more than three times.
func word(c classes, text string, i int) (end int, second bool) {
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

// uppers matches U*. It returns its end, and the end of the last rune in it that is also in L, or i if there is none.
func uppers(c classes, text string, i int) (end, both int) {
	for both = i; ; {
		found, size := c.at(text, i)
		if found&upperSet == 0 {
			return i, both
		}
		i += size
		if found != upper {
			both = i
		}
	}
}
