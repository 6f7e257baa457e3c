package record

import (
	"cmp"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// skeleton is a simplified reading of a text, in lower-case ASCII. Characters that look like ASCII, or become ASCII in the
// Unicode compatibility form, are folded; invisible characters and combining marks are removed. A model may read the text
// that way, though no parser does.
type skeleton struct {
	text string
	at   []int // index in the original text of each byte; the last element is the length of the original
}

// foreign stands for a character that does not look like ASCII.
const foreign = 0x7f

func readSkeleton(text string) skeleton {
	b := make([]byte, 0, len(text))
	at := make([]int, 0, len(text)+1)
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
			if c, visible := fold(part); visible {
				b, at = append(b, c), append(at, i)
			}
		}
	}
	return skeleton{string(b), append(at, len(text))}
}

// fold returns the lower-case ASCII character that r looks like, or foreign. It reports false if r is invisible.
func fold(r rune) (c byte, visible bool) {
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

// lookalikes maps characters to the ASCII ones of delimiters and role names that they are confusable with (UTS 39).
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
