package tokenize

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/bits"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// none is the result of a look-up that finds no token.
const none = ^uint32(0)

// idBits is the number of bits for a token id. A slot of the piece table has a fingerprint in the bits above.
const idBits = 18

// vocabulary is a set of tokens, immutable once loaded. A token's id is its rank: merges with a lower id come first.
type vocabulary struct {
	name    string
	text    []byte   // the tokens' bytes, concatenated in order of id
	starts  []uint32 // token id is text[starts[id]:starts[id+1]]
	slots   []uint32 // open addressing by hash of the bytes: fingerprint<<idBits | id+1, 0 is empty
	seed    maphash.Seed
	longest int         // bytes in the longest token
	single  [256]uint32 // the token of each byte
	double  []uint32    // the token of two bytes, by first<<8 | second
	pairs   pairTable
}

// loadVocabulary reads an embedded vocabulary and builds its tables.
func loadVocabulary(name string) (*vocabulary, error) {
	file, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("load vocabulary %s: %w", name, err)
	}
	v, err := readVocabulary(name, bytes.NewReader(file), len(file))
	if err != nil {
		return nil, fmt.Errorf("load vocabulary %s: %w", name, err)
	}
	return v, nil
}

// readVocabulary reads tiktoken's format: a line for each token with the base64 of its bytes, a space and its rank. Ranks start
// at 0 and have no gaps, and every single byte must be a token. size is the number of bytes to read, from which the tables are
// preallocated: less than half of it are the tokens' bytes, and lines of a large vocabulary have at least 16 bytes.
func readVocabulary(name string, r io.Reader, size int) (*vocabulary, error) {
	v := &vocabulary{name: name, seed: maphash.MakeSeed(), text: make([]byte, 0, size/2), starts: make([]uint32, 1, 1+size/16)}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := v.add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("token %d: %w", v.size(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return v, v.index()
}

// add appends the token of one line.
func (v *vocabulary) add(line []byte) error {
	encoded, rank, found := bytes.Cut(line, []byte(" "))
	if !found {
		return errors.New("no rank")
	}
	if n, err := strconv.Atoi(string(rank)); err != nil || n != v.size() {
		return fmt.Errorf("rank %q is out of order", rank)
	}
	if v.size() == 1<<idBits-1 {
		return errors.New("too many tokens")
	}
	text, err := base64.StdEncoding.AppendDecode(v.text, encoded)
	if err != nil {
		return err
	}
	if len(text) == len(v.text) {
		return errors.New("empty token")
	}
	v.longest = max(v.longest, len(text)-len(v.text))
	v.text = text
	v.starts = append(v.starts, uint32(len(text))) //nolint:gosec // the vocabulary is smaller
	return nil
}

// index builds the tables over the tokens read.
func (v *vocabulary) index() error {
	v.slots = make([]uint32, 1<<bits.Len(uint(v.size()))) // longer than size, so that a search always ends at an empty slot
	v.double = make([]uint32, 1<<16)
	for i := range v.double {
		v.single[i&0xff], v.double[i] = none, none
	}
	for id := range uint32(v.size()) { //nolint:gosec // the vocabulary, or a window, is smaller
		v.insert(id)
	}
	for b, id := range v.single {
		if id == none {
			return fmt.Errorf("byte %#x is not a token", b)
		}
	}
	return v.pairs.build(v)
}

func (v *vocabulary) insert(id uint32) {
	token := v.token(id)
	switch len(token) {
	case 1:
		v.single[token[0]] = id
	case 2:
		v.double[int(token[0])<<8|int(token[1])] = id
	}
	h := maphash.Bytes(v.seed, token)
	mask := len(v.slots) - 1
	at := int(h) & mask //nolint:gosec // masked to the table's size
	for v.slots[at] != 0 {
		at = (at + 1) & mask
	}
	v.slots[at] = fingerprint(h) | (id + 1)
}

// size returns the number of tokens.
func (v *vocabulary) size() int { return len(v.starts) - 1 }

// token returns the bytes of a token.
func (v *vocabulary) token(id uint32) []byte { return v.text[v.starts[id]:v.starts[id+1]] }

// find returns the token whose bytes are piece, or none. The piece must not be empty.
func (v *vocabulary) find(piece string) uint32 {
	switch {
	case len(piece) == 1:
		return v.single[piece[0]]
	case len(piece) == 2:
		return v.double[int(piece[0])<<8|int(piece[1])]
	case len(piece) > v.longest:
		return none
	}
	h := maphash.String(v.seed, piece)
	print, mask := fingerprint(h), len(v.slots)-1
	for at := int(h) & mask; ; at = (at + 1) & mask { //nolint:gosec // masked to the table's size
		slot := v.slots[at]
		if slot == 0 {
			return none
		}
		if id := slot&(1<<idBits-1) - 1; slot&^(1<<idBits-1) == print && string(v.token(id)) == piece {
			return id
		}
	}
}

// fingerprint returns the part of a hash that a slot keeps with the id.
func fingerprint(h uint64) uint32 { return uint32(h>>32) &^ (1<<idBits - 1) }
