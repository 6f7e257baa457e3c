package fakeupstream

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestPrefixCacheIsBounded(t *testing.T) {
	c := newCache(8)
	send := func(n int) int {
		m := json.RawMessage(fmt.Sprint(n))
		return c.use(prompt{messages: []json.RawMessage{m}}, func([]byte) int { return 2048 })
	}
	kept := 1 << 20
	send(kept)
	for n := range 100 {
		send(n)
		if got := c.known.Len(); got > 8 {
			t.Fatalf("%d prefixes in memory", got)
		}
		if n%5 == 0 && send(kept) != 2048 {
			t.Fatalf("a prefix in use was forgotten after %d", n)
		}
	}
	if send(0) != 0 {
		t.Error("an old prefix was not forgotten")
	}
}
