package record

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// skeleton is what a text reads as: ASCII in lower case. Characters that only look like ASCII, or become it in Unicode's compatibility
// form, are folded; those that do not show, and marks above and below letters, are left out. A model may read a text that way, though
// no parser does.
type skeleton struct {
	text string
	at   []int // where in the text that was read each byte comes from, and its length at the end
}

// foreign stands in a skeleton for a character that reads as none of ASCII.
const foreign = 0x7f

func readSkeleton(text string) skeleton {
	b, at := make([]byte, 0, len(text)), make([]int, 0, len(text)+1)
	for i, r := range text {
		if r < utf8.RuneSelf {
			b, at = append(b, lower(text[i])), append(at, i)
			continue
		}
		decomposed := norm.NFKD.PropertiesString(text[i:]).Decomposition()
		if decomposed == nil {
			decomposed = utf8.AppendRune(nil, r)
		}
		for _, part := range string(decomposed) {
			if c, shows := fold(part); shows {
				b, at = append(b, c), append(at, i)
			}
		}
	}
	return skeleton{string(b), append(at, len(text))}
}

// fold is the ASCII character, in lower case, that a character reads as. It reports false for one that does not show.
func fold(r rune) (byte, bool) {
	switch {
	case r < utf8.RuneSelf:
		return lower(string(r)[0]), true
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point):
		return 0, false
	case r == '\u2028' || r == '\u2029':
		return '\n', true
	case unicode.IsSpace(r):
		return ' ', true
	}
	if c, ok := lookalike(r); ok {
		return c, true
	}
	return foreign, true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// lookalike is the ASCII character that r is confusable with (UTS 39), of those that delimiters and the names of roles need.
func lookalike(r rune) (byte, bool) {
	switch r {
	case '❮', '〈', '⟨', '˂', 'ᐸ', '𐒼', '❬', '⧼', '𖫻':
		return '<', true
	case '❯', '⟩', '〉', '˃', 'ᐳ', '❭', '⧽':
		return '>', true
	case '꞉', '∶', 'ː', '։', '׃', '܃', '܄', 'ꓽ':
		return ':', true
	case '⁄', '∕', '╱', '⧸', '⟋', '丿':
		return '/', true
	case '【', '〔', '⟦', '〚', '❲', '⁅':
		return '[', true
	case '】', '〕', '⟧', '〛', '❳', '⁆':
		return ']', true
	case 'ǀ', '∣', '│', '┃', '❘', '⏐', '丨':
		return '|', true
	case '∗', '⁎', '✱', '﹡':
		return '*', true
	case '▁':
		return '_', true
	case 'а', 'А', 'ɑ', 'α', 'Α', 'ᴀ':
		return 'a', true
	case 'ʙ', 'в', 'В', 'Β':
		return 'b', true
	case 'с', 'С', 'ϲ', 'ς', 'ᴄ', 'ⲥ':
		return 'c', true
	case 'ԁ', 'ᴅ':
		return 'd', true
	case 'е', 'Е', 'ҽ', 'ε', 'Ε', 'ᴇ':
		return 'e', true
	case 'ƒ', 'ꜰ':
		return 'f', true
	case 'ɡ', 'ɢ':
		return 'g', true
	case 'һ', 'н', 'Н', 'Η', 'ʜ':
		return 'h', true
	case 'і', 'І', 'ı', 'ι', 'Ι', 'ɪ':
		return 'i', true
	case 'ӏ', 'Ӏ', 'ʟ':
		return 'l', true
	case 'м', 'М', 'Μ', 'ᴍ':
		return 'm', true
	case 'п', 'ո', 'Ν', 'ɴ', 'η':
		return 'n', true
	case 'о', 'О', 'ο', 'Ο', 'ᴏ', 'օ':
		return 'o', true
	case 'р', 'Р', 'ρ', 'Ρ', 'ᴘ':
		return 'p', true
	case 'г', 'ʀ':
		return 'r', true
	case 'ѕ', 'Ѕ', 'ꜱ', 'ʂ':
		return 's', true
	case 'т', 'Т', 'τ', 'Τ', 'ᴛ':
		return 't', true
	case 'υ', 'ս', 'Ա', 'ᴜ':
		return 'u', true
	case 'ѵ', 'Ѵ', 'ν', 'ᴠ':
		return 'v', true
	case 'ѡ', 'Ѡ', 'ԝ', 'Ԝ', 'ω', 'ᴡ':
		return 'w', true
	case 'у', 'У', 'ү', 'Ү', 'Υ', 'ʏ', 'γ':
		return 'y', true
	}
	return 0, false
}
