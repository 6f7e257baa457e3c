package overflow

import "strings"

// reach is how far a * goes, in bytes. It bounds the work of a row, which has one at most.
const reach = 200

// row is one way to say it. Its words are what is looked for in an error's text, which is in lower case, without
// backslashes, and with single spaces. In them
//
//	{limit} {prompt} {output} {total} {_}  are numbers, with or without commas; {prompt+} is a lower bound,
//	*                                      is anything, up to 200 bytes of it.
//
// The words begin with plain text. A text that also says what is in but is something else.
type row struct {
	words string
	but   string
}

// find looks for the row's words in a text, and tells where they begin.
func (r row) find(text string) (c counts, at int, ok bool) {
	if r.but != "" && strings.Contains(text, r.but) {
		return counts{}, 0, false
	}
	head, tail := plain(r.words)
	for from := 0; ; {
		i := strings.Index(text[from:], head)
		if i < 0 {
			return counts{}, 0, false
		}
		if c, ok := take(counts{}, text[from+i+len(head):], tail); ok {
			return c, from + i, true
		}
		from += i + 1
	}
}

// take reads words at the beginning of a text, and adds their numbers to c.
func take(c counts, text, words string) (counts, bool) {
	for words != "" {
		switch words[0] {
		case '*':
			return skip(c, text, words[1:])
		case '{':
			name, rest, _ := strings.Cut(words[1:], "}")
			n, after, ok := number(text)
			if !ok {
				return c, false
			}
			c, text, words = c.with(name, n), after, rest
		default:
			head, rest := plain(words)
			if !strings.HasPrefix(text, head) {
				return c, false
			}
			text, words = text[len(head):], rest
		}
	}
	return c, true
}

// skip reads words at the first place within reach where they are.
func skip(c counts, text, words string) (counts, bool) {
	for i := 0; i <= min(len(text), reach); i++ {
		if found, ok := take(c, text[i:], words); ok {
			return found, true
		}
	}
	return c, false
}

// plain cuts words before their first number or star.
func plain(words string) (head, tail string) {
	if i := strings.IndexAny(words, "{*"); i >= 0 {
		return words[:i], words[i:]
	}
	return words, ""
}

// number reads a number: digits, perhaps with commas between groups of three. One that no count can be is 0.
func number(text string) (n int, after string, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		switch {
		case digit(text, i):
			n = min(n*10+int(text[i]-'0'), maxCount+1)
		case i == 0 || !group(text, i):
			return count(n), text[i:], i > 0
		}
	}
	return count(n), "", i > 0
}

func digit(text string, i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }

// group reports whether at i a comma is between two groups of a number's digits.
func group(text string, i int) bool {
	return text[i] == ',' && digit(text, i+1) && digit(text, i+2) && digit(text, i+3) && !digit(text, i+4)
}

func count(n int) int {
	if n > maxCount {
		return 0
	}
	return n
}
