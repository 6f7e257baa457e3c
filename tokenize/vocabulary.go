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

// none is the id of no token: there is no such merge, or no such piece.
const none = ^uint32(0)

// vocabulary is a set of tokens, immutable once loaded. A token's id is its rank: merges with a lower id come first.
type vocabulary struct {
	name   string
	text   []byte   // the tokens' bytes, concatenated in order of id
	starts []uint32 // token id is text[starts[id]:starts[id+1]]
	slots  []uint32 // open addressing by hash of the bytes: id+1, 0 is empty; a map of strings would keep the garbage collector busy
	seed   maphash.Seed
	single [256]uint32 // the token of each byte
	pairs  pairTable
}

// loadVocabulary reads an embedded vocabulary and builds its tables.
func loadVocabulary(name string) (*vocabulary, error) {
	file, err := assets.Assets.Open(name + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("load vocabulary %s: %w", name, err)
	}
	defer file.Close()
	v, err := readVocabulary(name, file)
	if err != nil {
		return nil, fmt.Errorf("load vocabulary %s: %w", name, err)
	}
	return v, nil
}

// readVocabulary reads tiktoken's format: a line for each token with the base64 of its bytes, a space and its rank. Ranks start
// at 0 and have no gaps, and every single byte must be a token.
func readVocabulary(name string, r io.Reader) (*vocabulary, error) {
	v := &vocabulary{name: name, seed: maphash.MakeSeed(), starts: []uint32{0}}
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
	text, err := base64.StdEncoding.AppendDecode(v.text, encoded)
	if err != nil {
		return err
	}
	if len(text) == len(v.text) {
		return errors.New("empty token")
	}
	v.text = text
	v.starts = append(v.starts, uint32(len(text))) //nolint:gosec // the vocabulary is smaller
	return nil
}

// index builds the tables over the tokens read.
func (v *vocabulary) index() error {
	v.slots = make([]uint32, 1<<bits.Len(uint(v.size()))) // longer than size, so that a search always ends at an empty slot
	for id := range uint32(v.size()) {                    //nolint:gosec // the vocabulary, or a window, is smaller
		if slot := v.slot(string(v.token(id))); *slot == 0 {
			*slot = id + 1
		}
	}
	for b := range v.single {
		v.single[b] = v.find(string([]byte{byte(b)}))
		if v.single[b] == none {
			return fmt.Errorf("byte %#x is not a token", b)
		}
	}
	return v.pairs.build(v)
}

// size returns the number of tokens.
func (v *vocabulary) size() int { return len(v.starts) - 1 }

// token returns the bytes of a token.
func (v *vocabulary) token(id uint32) []byte { return v.text[v.starts[id]:v.starts[id+1]] }

// slot returns the slot of a token, or the empty one where it would be.
func (v *vocabulary) slot(piece string) *uint32 {
	mask := len(v.slots) - 1
	for at := int(maphash.String(v.seed, piece)); ; at++ { //nolint:gosec // masked to the table's size
		slot := &v.slots[at&mask]
		if *slot == 0 || string(v.token(*slot-1)) == piece {
			return slot
		}
	}
}

// find returns the token whose bytes are piece, or none.
func (v *vocabulary) find(piece string) uint32 { return *v.slot(piece) - 1 }
