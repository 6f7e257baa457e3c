package tokenize

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// The embedded vocabularies are those that OpenAI publishes: the sums are in tiktoken's source (openai_public.py).
func TestVocabularyIsOpenAIs(t *testing.T) {
	sums := map[string]string{
		O200k:  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
		Cl100k: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
	}
	sizes := map[string]int{O200k: 199998, Cl100k: 100256}
	for _, s := range eachSubject(t) {
		file, err := assets.Assets.ReadFile(s.Name() + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(file)
		if got := hex.EncodeToString(sum[:]); got != sums[s.Name()] {
			t.Errorf("%s: SHA-256 %s", s.Name(), got)
		}
		if n := s.vocabulary.size(); n != sizes[s.Name()] {
			t.Errorf("%s: %d tokens", s.Name(), n)
		}
	}
}

func TestVocabularyFindsEachToken(t *testing.T) {
	for _, s := range eachSubject(t) {
		v := s.vocabulary
		for id := range uint32(v.size()) {
			if got := v.find(string(v.token(id))); got != id {
				t.Fatalf("%s: token %d %q is found as %d", s.Name(), id, v.token(id), got)
			}
		}
		for _, absent := range []string{"\xff\xff", "\xff\xfe\xfd", "no such token", strings.Repeat("x", v.longest+1)} {
			if id := v.find(absent); id != none {
				t.Errorf("%s: %q is found as %d", s.Name(), absent, id)
			}
		}
	}
}

// written returns a vocabulary in tiktoken's format: all single bytes, and then the given lines.
func written(more ...string) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for _, line := range more {
		b.WriteString(line + "\n")
	}
	return b.String()
}

func TestReadVocabulary(t *testing.T) {
	text := written("YWI= 256", "", "YWJj 257") // ab, abc
	v, err := readVocabulary("small", strings.NewReader(text), len(text))
	if err != nil {
		t.Fatal(err)
	}
	if v.size() != 258 || v.find("ab") != 256 || v.find("abc") != 257 || v.find("bc") != none {
		t.Errorf("%d tokens; ab %d, abc %d, bc %d", v.size(), v.find("ab"), v.find("abc"), v.find("bc"))
	}
	if got := v.pairs.merge(256, 'c'); got != 257 {
		t.Errorf("ab and c make %d", got)
	}
	if got := v.pairs.merge('b', 'c'); got != none {
		t.Errorf("b and c make %d", got)
	}
}

func TestReadVocabularyRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := readVocabulary("bad", strings.NewReader(text), len(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f("", "byte 0x0 is not a token")
	f("YQ==\n", "token 0: no rank")
	f("YQ== x\n", `token 0: rank "x" is out of order`)
	f("YQ== 1\n", "out of order")
	f(written("YWI= 257"), "token 256: rank")
	f(written("?? 256"), "token 256: illegal base64")
	f(written(" 256"), "empty token")
	f(written("YWJj 256"), "token 256: no merges of lower rank lead to it")
	f(written("YWJj 256", "YWI= 257"), "token 256: no merges")
	f(written(strings.Repeat("A", 1<<17)), "too long")
}

func TestRegistryRefusesOthers(t *testing.T) {
	if _, err := New().Encoder("p50k_base"); err == nil || !strings.Contains(err.Error(), "p50k_base") {
		t.Errorf("error %v", err)
	}
	if _, err := loadVocabulary("nosuch"); err == nil || !strings.Contains(err.Error(), "load vocabulary nosuch") {
		t.Errorf("error %v", err)
	}
}
