// Package tokenize counts tokens: by byte-pair encoding with the embedded vocabularies o200k_base and cl100k_base, for texts and
// for whole messages. Calibration corrects the counts by those that an upstream reports.
//
// The encoder is exact. It produces the same tokens as tiktoken-go's EncodeOrdinary, with one deviation: the contraction
// alternatives are case-insensitive, and under case folding U+017F (LATIN SMALL LETTER LONG S) is an "s". Here, as in OpenAI's
// tiktoken, it is; in tiktoken-go's regular expression engine it is not.
//
// Character classes come from the Unicode tables of the Go release (15.0.0 in Go 1.26), as in tiktoken-go. OpenAI's
// tiktoken has newer tables, and may split letters added since then differently.
//
// Splitting reads every byte a bounded number of times, and merging any piece of n bytes takes O(n log n) steps. The scratch
// memory is bounded.
//
// The package does not download, write or log anything, and loads a vocabulary only when it is first used.
package tokenize

import (
	"fmt"
	"runtime"
	"sync"
	"unicode/utf8"
)

// The embedded encodings.
const (
	O200k  = "o200k_base"
	Cl100k = "cl100k_base"
)

// Registry holds the vocabularies of a process. Each is loaded once, when it is first used, and is never released. Safe for
// concurrent use.
type Registry struct {
	encoders map[string]func() (*Encoder, error)
}

// New returns a registry that has loaded nothing yet.
func New() *Registry {
	classes := sync.OnceValue(newClasses)
	load := func(encoding string, split splitter) func() (*Encoder, error) {
		return sync.OnceValues(func() (*Encoder, error) {
			v, err := loadVocabulary(encoding)
			if err != nil {
				return nil, err
			}
			return newEncoder(v, classes(), split), nil
		})
	}
	return &Registry{map[string]func() (*Encoder, error){O200k: load(O200k, splitO200k), Cl100k: load(Cl100k, splitCl100k)}}
}

// Encoder returns the encoder for an encoding, O200k or Cl100k. The first call for an encoding loads its vocabulary, and
// concurrent callers wait for it. Any other name is an error.
func (r *Registry) Encoder(encoding string) (*Encoder, error) {
	if load, known := r.encoders[encoding]; known {
		return load()
	}
	return nil, fmt.Errorf("tokenize: unknown encoding %q (known: %s, %s)", encoding, O200k, Cl100k)
}

// Encoder counts tokens in one encoding. Special tokens spelled out in a text (<|endoftext|>) count as ordinary text. Each byte
// that is not valid UTF-8 counts as U+FFFD, as in tiktoken-go. Safe for concurrent use.
//
// The zero Encoder has no vocabulary, and returns high estimates from the size alone. It is the fallback if a vocabulary cannot
// be loaded.
//
// After its first calls, an encoder does not allocate, with two exceptions: a copy of a text that is not valid UTF-8, and, for a very long
// piece that cannot be encoded in windows (none is known), scratch memory of up to 56 bytes per byte that is not reused.
type Encoder struct {
	vocabulary *vocabulary
	classes    classes
	split      splitter
	scratch    chan *merger // a free list
}

// newEncoder returns an encoder whose free list has room for as many mergers as can run at the same time.
func newEncoder(v *vocabulary, c classes, split splitter) *Encoder {
	return &Encoder{vocabulary: v, classes: c, split: split, scratch: make(chan *merger, runtime.GOMAXPROCS(0))}
}

// Name returns the name of the encoding, or "estimate" for the zero Encoder.
func (e *Encoder) Name() string {
	if e.vocabulary == nil {
		return "estimate"
	}
	return e.vocabulary.name
}

// Count returns the number of tokens in a text.
func (e *Encoder) Count(text string) int {
	if e.vocabulary == nil {
		return estimate(len(text))
	}
	var out tokens
	e.encode(text, &out)
	return out.n
}

// tokens is the result of encoding: the number of tokens, and the tokens themselves if keep is set.
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

// encode adds the tokens of a text to out.
func (e *Encoder) encode(text string, out *tokens) {
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // each invalid byte becomes U+FFFD
	}
	var m *merger // taken only for texts that have a piece to merge
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		if id := e.vocabulary.find(text[i:end]); id != none {
			out.add(id)
		} else {
			if m == nil {
				m = e.takeMerger()
			}
			m.mergeWindows(e.vocabulary, text[i:end], windowBytes, out)
		}
		i = end
	}
	if m != nil {
		e.putMerger(m)
	}
}

func (e *Encoder) takeMerger() *merger {
	select {
	case m := <-e.scratch:
		return m
	default:
		return &merger{}
	}
}

// putMerger keeps a merger for later calls, unless it is large or the free list is full.
func (e *Encoder) putMerger(m *merger) {
	if m.capacity() > windowBytes {
		return
	}
	select {
	case e.scratch <- m:
	default:
	}
}
