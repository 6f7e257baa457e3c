package proxy

import (
	"sync"
	"sync/atomic"
)

// budget bounds the request bytes that the process holds at one time. It never blocks.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves n bytes, or reports that there is no room.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// Buffers come in sizes of 16 KiB times a power of four, up to 64 MiB; larger ones are not pooled.
const (
	smallestBuffer = 16 << 10
	bufferSizes    = 7
)

// bufferPool hands out growing byte buffers.
type bufferPool struct {
	sizes [bufferSizes]sync.Pool
}

// get gives an empty buffer with room for at least n bytes.
func (p *bufferPool) get(n int) []byte {
	size := smallestBuffer
	for i := range p.sizes {
		if n <= size {
			if b, ok := p.sizes[i].Get().(*[]byte); ok {
				return (*b)[:0]
			}
			return make([]byte, 0, size)
		}
		size *= 4
	}
	return make([]byte, 0, n)
}

func (p *bufferPool) put(b []byte) {
	size := smallestBuffer
	for i := range p.sizes {
		if cap(b) == size {
			p.sizes[i].Put(&b)
			return
		}
		size *= 4
	}
}
