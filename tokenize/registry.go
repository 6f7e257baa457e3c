package tokenize

import (
	"fmt"
	"sync"
)

// The encodings that are embedded.
const (
	O200k  = "o200k_base"
	Cl100k = "cl100k_base"
)

// Registry owns the vocabularies of one process. Each is loaded when it is first asked for, once, and stays. Safe for
// concurrent use.
type Registry struct {
	classes func() *classes
	o200k   func() (*Encoder, error)
	cl100k  func() (*Encoder, error)
}

// New makes a registry. It loads nothing yet.
func New() *Registry {
	r := &Registry{classes: sync.OnceValue(newClasses)}
	r.o200k = sync.OnceValues(func() (*Encoder, error) { return r.load(O200k, splitO200k) })
	r.cl100k = sync.OnceValues(func() (*Encoder, error) { return r.load(Cl100k, splitCl100k) })
	return r
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

// EncoderFor returns the encoder for a model. known is false where the model is not in the table and the fallback
// (FallbackEncoding) stands in for it.
func (r *Registry) EncoderFor(model string) (e *Encoder, known bool, err error) {
	encoding, known := ForModel(model)
	e, err = r.Encoder(encoding)
	return e, known, err
}

func (r *Registry) load(encoding string, split splitter) (*Encoder, error) {
	v, err := loadVocabulary(encoding)
	if err != nil {
		return nil, err
	}
	return newEncoder(v, r.classes(), split), nil
}
