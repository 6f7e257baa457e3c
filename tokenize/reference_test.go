package tokenize

import (
	"slices"
	"strings"
	"sync"
	"testing"

	tiktoken "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// subject is an encoder and tiktoken-go's encoder with the same vocabulary.
type subject struct {
	*Encoder
	reference *tiktoken.Tiktoken
}

// subjects loads both encodings once for the test binary, since it takes a second.
var subjects = sync.OnceValues(func() ([]subject, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	registry := New()
	var all []subject
	for _, name := range []string{O200k, Cl100k} {
		encoder, err := registry.Encoder(name)
		if err != nil {
			return nil, err
		}
		reference, err := tiktoken.GetEncoding(name)
		if err != nil {
			return nil, err
		}
		all = append(all, subject{encoder, reference})
	}
	return all, nil
})

func eachSubject(t testing.TB) []subject {
	t.Helper()
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// expected returns tiktoken-go's encoding.
func (s subject) expected(text string) []uint32 {
	var ids []uint32
	for _, id := range s.reference.EncodeOrdinary(text) {
		ids = append(ids, uint32(id))
	}
	return ids
}

// ids returns the tokens of a text.
func (s subject) ids(text string) []uint32 {
	out := tokens{keep: true}
	s.encode(text, &out)
	return out.ids
}

// check compares every way to count with the reference.
func (s subject) check(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) {
	t.Helper()
	want, got := s.expected(text), s.ids(text)
	if !slices.Equal(got, want) {
		t.Fatalf("%s of %q:\n got %q\nwant %q", s.Name(), text, s.spell(got), s.spell(want))
	}
	if n := s.Count(text); n != len(want) {
		t.Fatalf("%s counts %d in %q, want %d", s.Name(), n, text, len(want))
	}
}

func (s subject) spell(ids []uint32) []string {
	var words []string
	for _, id := range ids {
		words = append(words, string(s.vocabulary.token(id)))
	}
	return words
}

// referenceIsWrong reports whether tiktoken-go is known to differ from tiktoken: at an apostrophe with a long s.
func referenceIsWrong(text string) bool { return strings.Contains(text, "'ſ") }
