// Package tokenize counts tokens: byte-pair encoding over the embedded vocabularies o200k_base and cl100k_base, the
// cost of a whole message, and the correction of both by what an upstream says it counted.
//
// The encoder is exact: token for token what tiktoken-go's EncodeOrdinary gives, with one deviation. The contraction
// alternatives are case-insensitive, and case folding makes U+017F (LATIN SMALL LETTER LONG S) an "s"; OpenAI's
// tiktoken knows that, tiktoken-go's regular expression engine does not. Here it is an "s".
//
// Character classes come from the Unicode tables of the Go release (15.0.0 in Go 1.26), as tiktoken-go's do. OpenAI's
// tiktoken has newer ones, so letters that were encoded since can be split otherwise there.
//
// It is linear: splitting looks at every byte a bounded number of times, and merging a piece of n bytes takes
// O(n log n) steps in bounded scratch, whatever the piece.
//
// Nothing here downloads, writes or logs, and nothing is loaded before it is asked for.
package tokenize

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// The encodings that are embedded.
const (
	O200k  = "o200k_base"
	Cl100k = "cl100k_base"
)

// Registry owns the vocabularies of one process. Each is loaded when it is first asked for, once, and stays. Safe for
// concurrent use.
type Registry struct {
	o200k, cl100k func() (*Encoder, error)
}

// New makes a registry. It loads nothing yet.
func New() *Registry {
	classes := sync.OnceValue(newClasses)
	loading := func(encoding string, split splitter) func() (*Encoder, error) {
		return sync.OnceValues(func() (*Encoder, error) {
			v, err := loadVocabulary(encoding)
			if err != nil {
				return nil, err
			}
			return &Encoder{vocabulary: v, classes: classes(), split: split}, nil
		})
	}
	return &Registry{o200k: loading(O200k, splitO200k), cl100k: loading(Cl100k, splitCl100k)}
}

// Encoder returns the encoder of an encoding (O200k or Cl100k). The first call for an encoding loads its vocabulary;
// concurrent callers wait for it. Any other name is an error.
func (r *Registry) Encoder(encoding string) (*Encoder, error) {
	switch encoding {
	case O200k:
		return r.o200k()
	case Cl100k:
		return r.cl100k()
	}
	return nil, fmt.Errorf("tokenize: unknown encoding %q (known: %s, %s)", encoding, O200k, Cl100k)
}

// Encoder counts text by one encoding. Text that spells a special token (<|endoftext|>) is text. Bytes that are not
// UTF-8 count as U+FFFD each, as Go's range reads them and as tiktoken-go does. Safe for concurrent use.
//
// The zero Encoder has no vocabulary, and counts a high estimate by size alone: for when none can be had.
//
// After its first calls an encoder allocates nothing to count, but for a copy of text that is not UTF-8, and scratch of
// up to 56 bytes a byte for a very long piece that windows do not settle (none is known), which is not kept.
type Encoder struct {
	vocabulary *vocabulary
	classes    classes
	split      splitter
	mergers    sync.Pool // of *merger
}

// Name is the name of the encoding.
func (e *Encoder) Name() string {
	if e.vocabulary == nil {
		return "estimate"
	}
	return e.vocabulary.name
}

// Count is the number of tokens in a text.
func (e *Encoder) Count(text string) int {
	if e.vocabulary == nil {
		return estimate(len(text))
	}
	return e.encode(text, &tokens{}).n
}

// CountBytes is Count for a text in a byte slice, which must not change meanwhile.
func (e *Encoder) CountBytes(text []byte) int {
	// Nothing keeps the string. A copy would cost a request body's size in garbage for each request.
	return e.Count(unsafe.String(unsafe.SliceData(text), len(text))) //nolint:gosec // the bytes are only read
}

// tokens is what an encoding comes to: their number, and themselves if they are to be kept.
type tokens struct {
	n    int
	ids  []uint32
	keep bool
}

func (t *tokens) add(id uint32) {
	t.n++
	if t.keep {
		t.ids = append(t.ids, id)
	}
}

// encode adds the tokens of a text.
func (e *Encoder) encode(text string, to *tokens) *tokens {
	if !utf8.ValidString(text) {
		text = repair(text)
	}
	m, _ := e.mergers.Get().(*merger)
	if m == nil {
		m = &merger{}
	}
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		if id := e.vocabulary.find(text[i:end]); id != none {
			to.add(id)
		} else {
			m.windows(e.vocabulary, text[i:end], windowBytes, to)
		}
		i = end
	}
	if m.room() <= windowBytes {
		e.mergers.Put(m)
	}
	return to
}

// repair replaces each byte that is not UTF-8.
func repair(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}
