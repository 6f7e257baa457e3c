package tokenize

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

func TestEncoderEqualsReference(t *testing.T) {
	quick.Alone(t)
	contractions := "I'm you're he's don't we've they'll she'd I'M YOU'RE HE'S DON'T WE'VE THEY'LL SHE'D it'S 'tis 'S 'rE 'Ll "
	texts := []string{
		"", "a", " ", "\n", "'", "hello world", "Hello, World!", "\x00", "\x7f", "\u0080",
		contractions,
		strings.ReplaceAll(contractions, "'", "’"),
		strings.ReplaceAll(contractions, "'", "ʼ"),
		"''s '''ll 're's 's's's x's's's'd 1's !'s \n's 'r 'v 'l 're 'le 'rx e'r", "o'clock's 'sable 'tall 'reed", "AB's ABc's Ab'S É's é'LL",
		"\r\n\r\n\r\r\n\n", "a\r\nb\r\n\r\nc", "x \r\n y", "  \n  ", " \n x", "\n  x", "\n\n  \n x  \n", "!\r\n\r\n/", "//\n//\n/", "a/\n/b", "?/\r\n//x", " /\n",
		"trailing ", "trailing  ", "trailing \t ", "  leading", "\t\tleading", " \tx", "\t x", "a  b   c    d", "a\u00a0b", "a\u00a0\u00a0b", "\u3000x", "\u2028x\u2029\u0085y", "\u200bx\u200by", "\ufeffx", "\u180ex",
		"Russian Привет МИР Миру, ΕΛΛΗΝΙΚΆ ελληνικά mixedСкрипт АБВгде",
		"e\u0301 E\u0301 \u0301 \u0301\u0301 \u0301ABC \u0301abc \u0301's \u0301A's x\u0301'S A\u0301B\u0301C ab\u0301C !\u0301 !!\u0301x 1\u0301a \n\u0301 \t\u0301 \u00a0\u0301",
		"नमस्ते दुनिया สวัสดีชาวโลก שָׁלוֹם مرحبا بالعالم 안녕하세요 ᄒᆞᆫ글 தமிழ் বাংলা",
		"你好，世界！今天天气怎么样？日本語テキスト、カタカナひらがな。漢字ABC漢字abc漢字Abc ABC漢 abcD漢E",
		"👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ 🏴‍☠️ ©®™ ✂️✂", "😀😀😀😀😀😀",
		"ǅ ǈ ǅabc aǅ ABǅcd ǅ's ᾈᾉ ﬁ ﬂ ß ẞ ı İ K Å ſ sſ", "ʰʱʲ aʰB Aʰb ʰAb ABʰCD ABʰcd ªº ⁿ ₐ ー々〆",
		"0 12 123 1234 1234567890 ٠١٢٣٤٥ ०१२३ ⅫⅣ ½¾ ②③④⑤ 五六 ๑๒๓๔ 1٠2०3 x1 1x 1 2 ³²¹⁰",
		"\x01\x02\x1b[31mred\x1b[0m\x7f\x00\x00 a\x00b", "\tif x {\n\t\treturn nil\n\t}\n", "    def f(self):\n        pass\n\n\n",
		"https://example.com/a/b?c=d&e=f#g", "{\"a\":[1,2,{\"b\":null}],\"c\":\"d\\n\"}", "camelCaseHTTPServerID XMLHttpRequest aBcDeF ABCdEFgHI snake_case_NAME __init__",
		"<|endoftext|> <|fim_prefix|><|endofprompt|>", "-----BEGIN-----", "========", "/* ---- */", "$$$ ^^^ ~~~ ```go\n```",
		"\xff", "a\xffb", "\xe4\xbd", "\xed\xa0\x80", "\xc0\xaf x\xf0\x9f\x98 y", "\xff\xfe\xfd's", "é\xe9é",
		"\U0010ffff\U000e0001\ue000", "\u0378", "\U0001d400\U0001d41a\U0001d7ce", "𝕳𝖊𝖑𝖑𝖔 𐐀𐐨 𞤀𞤢 𓀀𓁀",
	}
	for _, unit := range []string{"a", "A", " ", "\n", "=", "0", "\t", "é", "中", "😀", "\u0301", "ab", "aB", "Ab ", "_", "\r\n", " \n", "ǅ", "ʰA", "ACGT", "xyz", "lo", "\xff"} {
		for _, n := range []int{2, 3, 7, 31, 63, 64, 65, 66, 127, 128, 129, 200, 600} {
			texts = append(texts, strings.Repeat(unit, n), strings.Repeat(unit, n)+"x", "x"+strings.Repeat(unit, n)+" y")
		}
	}
	for _, s := range eachSubject(t) {
		for _, text := range texts {
			s.check(t, text)
		}
	}
}

// The long s folds to s: OpenAI's tiktoken 0.14 gives these pieces; tiktoken-go splits "'ſab" and "'ſ" as one word.
func TestEncoderLongS(t *testing.T) {
	want := map[string]string{O200k: "a'ſ|ab", Cl100k: "a|'ſ|ab"}
	for _, s := range eachSubject(t) {
		var pieces []string
		text := "a'ſab"
		for i := 0; i < len(text); {
			end := s.split(s.classes, text, i)
			pieces = append(pieces, text[i:end])
			i = end
		}
		if got := strings.Join(pieces, "|"); got != want[s.Name()] {
			t.Errorf("%s splits %s, want %s", s.Name(), got, want[s.Name()])
		}
	}
}

// borders are runes and strings at the borders of the character classes in the patterns.
var borders = []string{
	"a", "b", "s", "t", "re", "ll", "e", "A", "B", "S", "LL", "ǅ", "ǆ", "É", "é", "Д", "д", "ʰ", "ー", "ª", "中", "文", "א", "न", "한",
	"\u0301", "\u093f", "\u20dd", "\ufe0f", "0", "1", "23", "٣", "Ⅷ", "½", " ", " ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\n", "\r", "\r\n",
	"'", "'", "’", "'s", "'S", "'re", "'LL", "'d", "/", "/", ".", "-", "_", "=", "(", "\"", "\\", "€", "😀", "\u200d", "\u200b", "\x00", "\x1b", "\ue000", "\U000e0100", "\xff", "\xe4\xbd",
}

func TestEncoderEqualsReferenceOnBorders(t *testing.T) {
	all := eachSubject(t)
	property.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(borders), 0, 40).Draw(t, "parts")
		for _, s := range all {
			s.check(t, strings.Join(parts, ""))
		}
	})
}

func TestEncoderEqualsReferenceOnText(t *testing.T) {
	all := eachSubject(t)
	property.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if referenceIsWrong(text) {
			t.Skip("the reference is wrong about the long s")
		}
		for _, s := range all {
			s.check(t, text)
		}
	})
}

// Pieces of many lengths without spaces, from few letters, so that merges compete.
func TestEncoderEqualsReferenceOnPieces(t *testing.T) {
	all := eachSubject(t)
	property.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]string{"ab", "abc", "eistn", "=-", "01", "中文的", "ер", "etaoinshr", "\n ", "ACGT"}).Draw(t, "letters")
		text := rapid.StringOfN(rapid.RuneFrom([]rune(letters)), 0, 300, -1).Draw(t, "text")
		for _, s := range all {
			s.check(t, text)
		}
	})
}

// A token's bytes encode to that one token if the splitter leaves them whole, and to tokens that spell the same bytes if not.
func TestEncoderRoundTripsVocabulary(t *testing.T) {
	for _, s := range eachSubject(t) {
		var ids []uint32
		var spelt []byte
		for id := range uint32(s.vocabulary.size()) {
			token := string(s.vocabulary.token(id))
			if strings.ToValidUTF8(token, "") != token {
				continue
			}
			ids, spelt = s.ids(token), spelt[:0]
			for _, id := range ids {
				spelt = append(spelt, s.vocabulary.token(id)...)
			}
			if string(spelt) != token {
				t.Fatalf("%s: %q came back as %q", s.Name(), token, spelt)
			}
			if s.split(s.classes, token, 0) == len(token) && (len(ids) != 1 || ids[0] != id) {
				t.Fatalf("%s: token %d %q is encoded as %v", s.Name(), id, token, ids)
			}
		}
	}
}

func FuzzEncoder(f *testing.F) {
	for _, text := range []string{"don't", "A\u0301B's", "  \n x", "//\n/", "中文abc", "'ll'LL", "\xff a", "123456", "aaaaaaaaaaaaaaaaaaaaaaaa", "HTTPServer's \u0301A"} {
		f.Add(text)
	}
	all := eachSubject(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2048 || referenceIsWrong(text) {
			t.Skip("too long for the reference, or the reference is wrong about the long s")
		}
		for _, s := range all {
			s.check(t, text)
		}
	})
}
