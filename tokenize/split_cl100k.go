package tokenize

// splitCl100k is cl100k_base's pattern, which is, an alternative a line:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+ , \s+(?!\S) , \s+
func splitCl100k(c *classes, text string, i int) int {
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
