package tokenize

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
