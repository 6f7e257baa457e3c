package tokenize

// splitter finds the end of the piece that starts at text[i], i < len(text). It follows one of OpenAI's splitting
// patterns, which cover any text, so the end is always beyond i. The text is valid UTF-8.
//
// The patterns are written for a backtracking engine: of the alternatives the first that matches wins, each as long as
// it can be. Read as a table of what the first rune may begin, no backtracking is left.
type splitter func(c *classes, text string, i int) int

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
func digits(c *classes, text string, i int) int {
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
func blanks(c *classes, text string, i int) int {
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
