package tokenize

import "math/bits"

// merger encodes a piece: a doubly linked list of its tokens, where a token's place is the offset of its first byte,
// and above the places a tournament of what each token makes with its next. Its root is the lowest rank, leftmost among
// equals; a change costs a walk up of log2(n) levels. Encoding n bytes takes at most n merges of three changes each.
type merger struct {
	id         []uint32 // by offset: the token there
	prev, next []int32
	// tree is a heap-shaped binary tree of rank<<32 | offset: tree[1] is the root, tree[i] the lower of tree[2i] and
	// tree[2i+1], and the last half the places.
	tree  []uint64
	leaf  int // the first place in tree: a power of two
	steps int // levels walked, for the tests that bound them
}

// room is the bytes that a piece may have without more memory.
func (m *merger) room() int { return cap(m.id) }

// idle is a place whose token makes nothing with its next, or that no token starts at any more.
const idle = ^uint64(0)

// merge encodes a piece, which is shorter than 2 GiB and not empty. The tokens are then the list from offset 0 on, until
// next is len(piece).
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

// grow makes room for n tokens.
func (m *merger) grow(n int) {
	m.leaf = 1 << bits.Len(uint(n-1))
	if cap(m.tree) < 2*m.leaf {
		m.id, m.tree = make([]uint32, m.leaf), make([]uint64, 2*m.leaf)
		m.prev, m.next = make([]int32, m.leaf), make([]int32, m.leaf)
	}
	m.tree = m.tree[:2*m.leaf]
}

// join makes one token of that at an offset and its next.
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

// set notes what the token at an offset makes with its next.
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

// A very long piece is merged window by window, so that scratch stays small and in the processor's caches.
const (
	windowBytes = 4 << 10
	// An eighth of a window overlaps the next. No random text was met, of any alphabet, that needs 32 bytes of it.
	overlapShare = 8
	// What a window does not settle is tried again with one so many times as long.
	windowGrowth = 8
)

// windows encodes a long piece into out.
//
// It is exact. A row of tokens is the encoding of its bytes if and only if every two neighbours are the encoding of
// theirs: a merge across a border of the row would be one across the border of those two neighbours alone (see
// pairTable). Two windows that share a token therefore join there: to its left the neighbours are those of one window,
// to its right those of the other. The next window starts at a token of the last one; if it begins with that token, the
// two join. If not, all is done again with longer windows, at last with a single one.
func (m *merger) windows(v *vocabulary, piece string, size int, out *tokens) {
	begin := *out
	for !m.tryWindows(v, piece, size, out) {
		*out = begin
		size *= windowGrowth
	}
}

// tryWindows encodes a piece by windows of a size; false if two of them do not join.
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

// drain adds the tokens that end by an offset to out, and returns where they end.
func (m *merger) drain(end int, out *tokens) int {
	at := 0
	for at < end && int(m.next[at]) <= end {
		out.add(m.id[at])
		at = int(m.next[at])
	}
	return at
}
