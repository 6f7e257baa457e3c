package engine

import (
	"fmt"
	"sync"
	"testing"
)

// TestCountCache: concurrent lookups return the right counts, and a small set stays cached.
func TestCountCache(t *testing.T) {
	c := newCountCache()
	content := func(i int) []byte { return fmt.Appendf(nil, "message %d", i) }
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			for i := range 3 * countsKept / 2 {
				want := i + 1
				if got := c.getOrCount(c.key("a", content(i)), func() int { return want }); got != want {
					t.Errorf("%d: the count of message %d is %d", w, i, got)
					return
				}
			}
		})
	}
	work.Wait()
	for i := range 100 {
		c.getOrCount(c.key("a", content(-i)), func() int { return i })
	}
	for i := range 100 {
		if n, ok := c.byKey.Get(c.key("a", content(-i))); !ok || n != i && i > 0 {
			t.Errorf("message %d: %d, %t", -i, n, ok)
		}
		if _, ok := c.byKey.Get(c.key("b", content(-i))); ok {
			t.Errorf("message %d is found in another encoding", -i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.getOrCount(c.key("a", []byte("x")), func() int { return 1 }) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCountCache(b *testing.B) {
	c := newCountCache()
	digest := make([]byte, 32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.getOrCount(c.key("cl100k_base", digest), func() int { return 7 })
		}
	})
}
