package proxy

import (
	"slices"
	"sync"
)

// Buffers come in powers of two from 16 KiB to 1 MiB, and in quarters of such a step from there to 64 MiB: a large one is
// a fifth too large at most. Still larger ones are not pooled.
const (
	smallestBuffer = 16 << 10
	evenBuffer     = 1 << 20
	largestBuffer  = 64 << 20
)

// bufferPool hands out byte buffers.
type bufferPool struct {
	sizes []int
	pools []sync.Pool // of *[]byte, by size
}

func newBufferPool() *bufferPool {
	p := &bufferPool{}
	for size := smallestBuffer; size <= largestBuffer; size *= 2 {
		p.sizes = append(p.sizes, size)
		for quarter := 1; quarter < 4 && size >= evenBuffer && size < largestBuffer; quarter++ {
			p.sizes = append(p.sizes, size+quarter*size/4)
		}
	}
	p.pools = make([]sync.Pool, len(p.sizes))
	return p
}

// round gives the room that a buffer for n bytes has.
func (p *bufferPool) round(n int) int {
	if i, _ := slices.BinarySearch(p.sizes, n); i < len(p.sizes) {
		return p.sizes[i]
	}
	return n
}

// get gives an empty buffer with room for at least n bytes.
func (p *bufferPool) get(n int) []byte {
	i, _ := slices.BinarySearch(p.sizes, n)
	if i == len(p.sizes) {
		return make([]byte, 0, n)
	}
	if b, ok := p.pools[i].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, p.sizes[i])
}

// put takes back what get gave.
func (p *bufferPool) put(b []byte) {
	if i, ok := slices.BinarySearch(p.sizes, cap(b)); ok {
		p.pools[i].Put(&b)
	}
}
