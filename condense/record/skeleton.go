package record

import (
	"cmp"
	"sync"
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
	return cmp.Or(lookalikes()[r], foreign), true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// lookalikes has for characters that are confusable with one of ASCII (UTS 39) which one that is, of those that delimiters and the names of
// roles need.
var lookalikes = sync.OnceValue(func() map[rune]byte {
	all := map[rune]byte{}
	for ascii, others := range map[byte]string{
		'<': "❮〈⟨˂ᐸ𐒼❬⧼𖫻",
		'>': "❯⟩〉˃ᐳ❭⧽",
		':': "꞉∶ː։׃܃܄ꓽ",
		'/': "⁄∕╱⧸⟋丿",
		'[': "【〔⟦〚❲⁅",
		']': "】〕⟧〛❳⁆",
		'|': "ǀ∣│┃❘⏐丨",
		'*': "∗⁎✱﹡",
		'_': "▁",
		'a': "аАɑαΑᴀ",
		'b': "ʙвВΒ",
		'c': "сСϲςᴄⲥ",
		'd': "ԁᴅ",
		'e': "еЕҽεΕᴇ",
		'f': "ƒꜰ",
		'g': "ɡɢ",
		'h': "һнНΗʜ",
		'i': "іІıιΙɪ",
		'l': "ӏӀʟ",
		'm': "мМΜᴍ",
		'n': "пոΝɴη",
		'o': "оОοΟᴏօ",
		'p': "рРρΡᴘ",
		'r': "гʀ",
		's': "ѕЅꜱʂ",
		't': "тТτΤᴛ",
		'u': "υսԱᴜ",
		'v': "ѵѴνᴠ",
		'w': "ѡѠԝԜωᴡ",
		'y': "уУүҮΥʏγ",
	} {
		for _, r := range others {
			all[r] = ascii
		}
	}
	return all
})
