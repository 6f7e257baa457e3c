package engine

import (
	"fmt"
	"sync"
	"testing"
)

// TestCountCache: what is found is what was put, however many share the table, and a small set is found again.
func TestCountCache(t *testing.T) {
	c := newCountCache()
	content := func(i int) []byte { return fmt.Appendf(nil, "message %d", i) }
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			for i := range 3 * countSlots / 2 {
				want := i + 1
				if got := c.of(c.key("a", content(i)), func() int { return want }); got != want {
					t.Errorf("%d: the count of message %d is %d", w, i, got)
					return
				}
			}
		})
	}
	work.Wait()
	for i := range 100 {
		c.put(c.key("a", content(-i)), i)
	}
	found := 0
	for i := range 100 {
		if n, ok := c.get(c.key("a", content(-i))); ok && n == i {
			found++
		}
		if _, ok := c.get(c.key("b", content(-i))); ok {
			t.Errorf("message %d is found in another encoding", i)
		}
	}
	if found < 95 { // two may have shared a slot
		t.Errorf("%d of 100 are found", found)
	}
	if n := testing.AllocsPerRun(100, func() { c.of(c.key("a", []byte("x")), func() int { return 1 }) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
