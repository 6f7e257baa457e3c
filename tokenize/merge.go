package tokenize

import "math/bits"

// merger encodes one piece at a time. It keeps the piece's tokens in a doubly linked list, indexed by the offset of each
// token's first byte, and a tournament tree over the offsets with the merge of each token with its successor. The root is the
// merge of the lowest rank, the leftmost among equals. Updating a leaf walks up at most log2(n) levels, and encoding n bytes
// takes at most n merges with three updates each.
type merger struct {
	id         []uint32 // by offset: the token that starts there
	prev, next []int32  // by offset: the offsets of the neighbouring tokens
	// tree is a heap-shaped binary tree of rank<<32 | offset: tree[1] is the root, tree[i] the lower of tree[2i] and
	// tree[2i+1], and the second half are the leaves, one for each offset.
	tree  []uint64
	leaf  int // index of the first leaf in tree: a power of two
	steps int // levels walked, for the tests that bound them
}

// capacity returns the length of the longest piece that needs no further allocation, in bytes.
func (m *merger) capacity() int { return cap(m.id) }

// idle is the leaf of an offset where no token starts, or whose token does not merge with its successor.
const idle = ^uint64(0)

// merge encodes a piece, which must not be empty and must be shorter than 2 GiB. Its tokens are the list from offset 0 on,
// until next is len(piece).
func (m *merger) merge(v *vocabulary, piece string) {
	m.begin(v, piece)
	for m.tree[1] != idle {
		m.join(v, int32(uint32(m.tree[1])), len(piece)) //nolint:gosec // the vocabulary, or a window, is smaller
	}
}

func (m *merger) begin(v *vocabulary, piece string) {
	m.grow(len(piece))
	last := len(piece) - 1
	for i := range last {
		m.id[i] = v.single[piece[i]]
		m.prev[i], m.next[i] = int32(i-1), int32(i+1)
		m.tree[m.leaf+i] = key(v.double[int(piece[i])<<8|int(piece[i+1])], int32(i))
	}
	m.id[last] = v.single[piece[last]]
	m.prev[last], m.next[last] = int32(last-1), int32(len(piece)) //nolint:gosec // the vocabulary, or a window, is smaller
	for i := m.leaf + last; i < len(m.tree); i++ {
		m.tree[i] = idle
	}
	for i := m.leaf - 1; i > 0; i-- {
		m.tree[i] = min(m.tree[2*i], m.tree[2*i+1])
	}
}

// grow prepares m for a piece of n bytes.
func (m *merger) grow(n int) {
	m.leaf = 1 << bits.Len(uint(n-1))
	if cap(m.tree) < 2*m.leaf {
		m.id, m.tree = make([]uint32, m.leaf), make([]uint64, 2*m.leaf)
		m.prev, m.next = make([]int32, m.leaf), make([]int32, m.leaf)
	}
	m.tree = m.tree[:2*m.leaf]
}

// join merges the token at an offset with its successor.
func (m *merger) join(v *vocabulary, at int32, end int) {
	merged := uint32(m.tree[1] >> 32)
	gone := m.next[at]
	next := m.next[gone]
	m.id[at], m.next[at] = merged, next
	m.set(gone, none)
	if int(next) < end {
		m.prev[next] = at
		m.set(at, v.pairs.merge(merged, m.id[next]))
	} else {
		m.set(at, none)
	}
	if before := m.prev[at]; before >= 0 {
		m.set(before, v.pairs.merge(m.id[before], merged))
	}
}

// set updates the merge of the token at an offset with its successor.
func (m *merger) set(at int32, merged uint32) {
	i := m.leaf + int(at)
	low := key(merged, at)
	if m.tree[i] == low {
		return
	}
	m.tree[i] = low
	for i > 1 {
		m.steps++
		low = min(low, m.tree[i^1])
		i >>= 1
		if m.tree[i] == low {
			return
		}
		m.tree[i] = low
	}
}

func key(merged uint32, at int32) uint64 {
	if merged == none {
		return idle
	}
	return uint64(merged)<<32 | uint64(at) //nolint:gosec // the vocabulary, or a window, is smaller
}

// A very long piece is merged window by window, so that the scratch memory stays small and fits the processor's caches.
const (
	windowBytes = 4 << 10
	// overlapShare is the share of a window, one eighth, that overlaps the next. In tests with random text over many alphabets
	// no window needed an overlap of 32 bytes.
	overlapShare = 8
	// windowGrowth is the factor by which windows grow if they do not line up, see mergeWindows.
	windowGrowth = 8
)

// mergeWindows encodes a piece of any length by windows of size bytes, and adds its tokens to out.
//
// The result is exact. A sequence of tokens is the encoding of its bytes if and only if every two neighbours are the encoding
// of theirs: a merge across a boundary in the sequence would also be a merge across the boundary of those two neighbours
// alone (see pairTable). So two windows that share a token line up there: to its left the neighbours are those of one
// window, to its right those of the other. Each window starts at a token of the window before; if its first token is that
// token, the two line up. If not, the piece is encoded again with longer windows, at last with a single one.
func (m *merger) mergeWindows(v *vocabulary, piece string, size int, out *tokens) {
	begin := *out
	for !m.tryWindows(v, piece, size, out) {
		*out = begin
		size *= windowGrowth
	}
}

// tryWindows encodes a piece by windows of size bytes. It returns false if two windows do not line up; out then has only a part of
// the tokens.
func (m *merger) tryWindows(v *vocabulary, piece string, size int, out *tokens) bool {
	shared := none
	for {
		window := piece[:min(size, len(piece))]
		m.merge(v, window)
		if shared != none && m.id[0] != shared {
			return false
		}
		if len(window) == len(piece) {
			m.drain(len(window), out)
			return true
		}
		at := m.drain(size-size/overlapShare, out)
		if at == 0 {
			return false
		}
		shared = m.id[at]
		piece = piece[at:]
	}
}

// drain adds the tokens that end at or before an offset to out, and returns the end of the last one.
func (m *merger) drain(end int, out *tokens) int {
	at := 0
	for at < end && int(m.next[at]) <= end {
		out.add(m.id[at])
		at = int(m.next[at])
	}
	return at
}
