package tokenize

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a kind of text to measure with.
type sample struct {
	name, text string
}

const sampleBytes = 256 << 10

func samples(b *testing.B) []sample {
	return []sample{
		{"code", sourceCode(b)},
		{"prose", prose()},
		{"cjk", cjk()},
		{"base64", randomBase64()},
		{"run", strings.Repeat("a", sampleBytes)},
		{"digits", strings.Repeat("3141592653589793", sampleBytes/16)},
		{"genome", genome()},
	}
}

// sourceCode returns this package's source, repeated.
func sourceCode(b *testing.B) string {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		b.Fatal("no source code: ", err)
	}
	var text strings.Builder
	for text.Len() < sampleBytes {
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			text.Write(content)
		}
	}
	return text.String()[:sampleBytes]
}

// prose returns words in random order, with punctuation.
func prose() string {
	words := strings.Fields(`the of and to a in that it is was for on are as with they at be this from have or by one had not but what
		all were when we there can an your which their said if do will each about how up out them then she many some these so
		would other into has more her two like him see time could no make than first been its who now people my made over did
		down only way find use may water long little very after words called just where most know condensation threshold
		conversation upstream history vocabulary encoder request forwarded observation understanding nevertheless mountains
		yesterday's couldn't they've London Paris December engineering responsibilities`)
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < sampleBytes {
		text.WriteString(words[random.IntN(len(words))])
		text.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", " ", ", ", ". ", ".\n\n"}[random.IntN(11)])
	}
	return text.String()[:sampleBytes]
}

// cjk returns common characters in random order, in clauses.
func cjk() string {
	common := []rune("的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运")
	random := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for text.Len() < sampleBytes {
		for range 4 + random.IntN(14) {
			text.WriteRune(common[random.IntN(len(common))])
		}
		text.WriteString([]string{"，", "。", "、"}[random.IntN(3)])
	}
	return text.String()
}

func randomBase64() string {
	random := rand.NewChaCha8([32]byte{5})
	raw := make([]byte, sampleBytes/4*3)
	_, _ = random.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

func genome() string {
	random := rand.New(rand.NewPCG(6, 7))
	text := make([]byte, sampleBytes)
	for i := range text {
		text[i] = "acgt"[random.IntN(4)]
	}
	return string(text)
}

func BenchmarkCount(b *testing.B) {
	for _, s := range eachSubject(b) {
		for _, sample := range samples(b) {
			b.Run(s.Name()+"/"+sample.name, func(b *testing.B) {
				b.SetBytes(int64(len(sample.text)))
				b.ReportAllocs()
				for b.Loop() {
					s.Count(sample.text)
				}
			})
		}
	}
}

// BenchmarkReference measures tiktoken-go on the same texts, and on only 4 KiB of those for which it takes quadratic time.
func BenchmarkReference(b *testing.B) {
	for _, s := range eachSubject(b) {
		for _, sample := range samples(b) {
			text := sample.text
			if sample.name == "run" || sample.name == "genome" {
				text = text[:4<<10]
			}
			b.Run(s.Name()+"/"+sample.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					s.reference.EncodeOrdinary(text)
				}
			})
		}
	}
}

// BenchmarkCountHostile counts one megabyte in one piece.
func BenchmarkCountHostile(b *testing.B) {
	for _, s := range eachSubject(b) {
		for _, unit := range []string{"a", " ", "=", "\n", "\u0301", "中", "ab", "xyz", "\xff"} {
			text := strings.Repeat(unit, 1<<20/len(unit))
			b.Run(s.Name()+"/"+strings.Trim(strings.ToValidUTF8(unit, "invalid"), "\n"), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					s.Count(text)
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{O200k, Cl100k} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New().Encoder(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
