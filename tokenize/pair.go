package tokenize

import (
	"fmt"
	"math/bits"
)

// pairTable holds the token that two neighbouring tokens merge to. Slots use open addressing and hold
// left<<36 | right<<18 | merged; 0 is empty, because no merged token has id 0 with both halves 0.
//
// Byte-pair encoding in tiktoken looks up the concatenated bytes of two neighbours, so it seems that every split of every
// token into two tokens is a pair. In fact one pair for each token is exact. Inside a stretch of bytes that no merge has crossed,
// the same merges happen as if that stretch were alone: if the lowest, leftmost merge of the whole lies inside the stretch, it is
// also the lowest, leftmost merge of the stretch. So if two neighbours together spell a token, they are the last two tokens
// left when the token's own bytes are encoded alone: its halves. No other split occurs.
type pairTable struct {
	slots []uint64
	shift uint
	// filter has a bit set for each pair, at a hash with filterBits more bits than that of slots. Most neighbours do not merge,
	// and the filter, which fits the second-level cache, excludes most of those.
	filter []uint64
}

// filterBits is the number of bits by which the filter's hash is longer than the slots'.
const filterBits = 3

// hashFactor is 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, 6.4).
const hashFactor = 0x9E3779B97F4A7C15

// build fills the table in order of rank, the order in which a vocabulary is trained: the halves of a token result only from
// merges of lower rank. It returns an error for a vocabulary in which they do not.
func (t *pairTable) build(v *vocabulary) error {
	width := bits.Len(uint(v.size()))
	*t = pairTable{
		slots:  make([]uint64, 1<<width),
		shift:  uint(64 - width),
		filter: make([]uint64, 1<<(width+filterBits)/64),
	}
	m := &merger{}
	for id := range uint32(v.size()) { //nolint:gosec // the vocabulary, or a window, is smaller
		if len(v.token(id)) == 1 {
			continue
		}
		left, right, ok := m.halves(v, id)
		if !ok {
			return fmt.Errorf("token %d: no merges of lower rank lead to it", id)
		}
		t.insert(left, right, id)
	}
	return nil
}

// halves returns the last two tokens before the bytes of a token merge to it.
func (m *merger) halves(v *vocabulary, id uint32) (left, right uint32, ok bool) {
	token := string(v.token(id))
	m.begin(v, token)
	for range len(token) - 2 {
		if m.tree[1]>>32 >= uint64(id) {
			return 0, 0, false
		}
		m.join(v, int32(uint32(m.tree[1])), len(token)) //nolint:gosec // the vocabulary, or a window, is smaller
	}
	return m.id[0], m.id[m.next[0]], true
}

func (t *pairTable) insert(left, right, merged uint32) {
	key := pairKey(left, right)
	h := key * hashFactor
	bit := h >> (t.shift - filterBits)
	t.filter[bit/64] |= 1 << (bit % 64)
	at := int(h >> t.shift) //nolint:gosec // the top bits: below the table's size
	for t.slots[at] != 0 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = key<<idBits | uint64(merged)
}

// merge returns the token that two neighbours merge to, or none.
func (t *pairTable) merge(left, right uint32) uint32 {
	key := pairKey(left, right)
	h := key * hashFactor
	bit := h >> (t.shift - filterBits)
	if t.filter[bit/64]&(1<<(bit%64)) == 0 {
		return none
	}
	for at := int(h >> t.shift); ; at = (at + 1) & (len(t.slots) - 1) { //nolint:gosec // the top bits: below the table's size
		slot := t.slots[at]
		if slot>>idBits == key {
			return uint32(slot & (1<<idBits - 1))
		}
		if slot == 0 {
			return none
		}
	}
}

func pairKey(left, right uint32) uint64 { return uint64(left)<<idBits | uint64(right) }
