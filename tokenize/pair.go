package tokenize

import (
	"fmt"
	"math/bits"
)

// pairTable says what two neighbouring tokens merge to. Slots are open addressing over left<<36 | right<<18 | merged;
// 0 is empty, because no merged token has id 0 with both halves 0.
//
// Byte-pair encoding in tiktoken ranks the bytes of two neighbours together, so at first sight every cut of every token
// in two tokens is a pair. Yet one pair a token is exact. What happens inside a stretch of bytes that no merge has
// crossed is what would happen to that stretch alone: the lowest, leftmost merge of the whole, where it lies inside,
// is the lowest, leftmost of the inside. So if two neighbours together spell a token, they are the last two that its
// own bytes, encoded alone, come down to: the halves. Any other cut is never seen.
type pairTable struct {
	slots []uint64
	shift uint
	// filter has a bit set for each pair, at its hash to some bits more than slots has: most neighbours make nothing, and
	// a filter that fits the second-level cache says so for most of them.
	filter []uint64
}

// filterBits is how much finer the filter is than the slots.
const filterBits = 3

// hashFactor is 2^64 over the golden ratio (Knuth, The Art of Computer Programming, 6.4).
const hashFactor = 0x9E3779B97F4A7C15

// build fills the table in order of rank, which is how a vocabulary is trained: the halves of a token come from merges
// of lower rank alone. A vocabulary where they do not is refused.
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

// halves encodes a token's bytes down to two tokens.
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

// merge is the token that two neighbours become, or none.
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
