package tokenize

import (
	"runtime"
	"strings"
	"unsafe"
)

// Encoder counts and encodes text by one encoding. Text that spells a special token (<|endoftext|>) is text. Bytes that
// are not UTF-8 count as U+FFFD each, as Go's range reads them and as tiktoken-go does. Safe for concurrent use.
//
// After its first calls an encoder allocates nothing to count, but for a copy of text that is not UTF-8, and scratch of
// up to 56 bytes a byte for a very long piece that windows do not settle (none is known). It keeps at most some 100 KiB
// of scratch for each of twice GOMAXPROCS calls.
type Encoder struct {
	vocabulary *vocabulary
	classes    *classes
	split      splitter
	free       chan *merger // idle scratch
	window     int
}

func newEncoder(v *vocabulary, c *classes, split splitter) *Encoder {
	return &Encoder{
		vocabulary: v,
		classes:    c,
		split:      split,
		free:       make(chan *merger, 2*runtime.GOMAXPROCS(0)),
		window:     windowBytes,
	}
}

// Name is the name of the encoding.
func (e *Encoder) Name() string { return e.vocabulary.name }

// Count is the number of tokens in a text.
func (e *Encoder) Count(text string) int {
	r := run{encoder: e}
	r.text(text)
	return r.out.n
}

// CountBytes is Count for a text in a byte slice, which must not change meanwhile.
func (e *Encoder) CountBytes(text []byte) int {
	// Nothing keeps the string. A copy would cost a request body's size in garbage for each request.
	return e.Count(unsafe.String(unsafe.SliceData(text), len(text))) //nolint:gosec // the bytes are only read
}

// Append appends the token ids of a text to dst.
func (e *Encoder) Append(dst []uint32, text string) []uint32 {
	r := run{encoder: e, out: tokens{ids: dst, keep: true}}
	r.text(text)
	return r.out.ids
}

// scratch takes an idle merger or makes one.
func (e *Encoder) scratch() *merger {
	select {
	case m := <-e.free:
		return m
	default:
		return newMerger()
	}
}

// release keeps a merger for the next, unless one large piece has made it grow.
func (e *Encoder) release(m *merger) {
	if m == nil || m.room() > windowBytes {
		return
	}
	select {
	case e.free <- m:
	default:
	}
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
