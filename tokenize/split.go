package tokenize

// splitter finds the end of the piece that starts at text[i], i < len(text). It follows one of OpenAI's splitting
// patterns, which cover any text, so the end is always beyond i. The text is valid UTF-8.
//
// The patterns are written for a backtracking engine: of the alternatives the first that matches wins, each as long as
// it can be. Read as a table of what the first rune may begin, no backtracking is left.
type splitter func(c classes, text string, i int) int

// contraction is the length of 's 't 're 've 'm 'll 'd, in either case, at text[i], or 0. Case folding makes U+017F
// (long s) an s too.
func contraction(text string, i int) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return 0
	}
	next := byte(0)
	if i+2 < len(text) {
		next = text[i+2]
	}
	switch text[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if next|0x20 == 'e' {
			return 3
		}
	case 'l':
		if next|0x20 == 'l' {
			return 3
		}
	}
	if text[i+1] == 0xC5 && next == 0xBF {
		return 3
	}
	return 0
}

// digits is \p{N}{1,3} at a number.
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

// blanks is \s*[\r\n]+|\s+(?!\S)|\s+ at white space: up to the last line end of the run; else, at the end of the text,
// the run; else the run but its last rune, which belongs to what follows; else that one rune.
//
// Of a run without a line end one rune is left over, and what follows a line end has none; so a run is read three times
// at most.
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

// splitCl100k is cl100k_base's pattern, which is, an alternative a line:
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
	return lineEnds(text, c.run(text, next, symbol|mark))
}

// prefixed is the word at next behind its optional first rune. A mark is in U and L itself: where the first alternative
// fails behind it, it matches the mark alone before the second alternative is asked.
func prefixed(c classes, text string, first class, next int) int {
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

// uppers reads a run of U: its end, and the end of the last rune in it that is in L too (i if there is none).
func uppers(c classes, text string, i int) (end, both int) {
	for both = i; ; {
		found, size := c.at(text, i)
		if found&upperSet == 0 {
			return i, both
		}
		if i += size; found != upper {
			both = i
		}
	}
}

// lineEnds is [\r\n/]*.
func lineEnds(text string, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || text[i] == '/') {
		i++
	}
	return i
}
