package session

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRepeatedCalls: an id is repeated if several calls of the history have it, however many ids were looked up before.
func TestRepeatedCalls(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 5))
		messages, calls := make([]Message, rng.IntN(60)), map[string]int{}
		for i := range messages {
			for range rng.IntN(3) {
				id := fmt.Sprint("call_", rng.IntN(40))
				messages[i].Calls = append(messages[i].Calls, id)
				calls[id]++
			}
		}
		repeated := repeatedCalls(messages)
		for range 2 * maxSearches {
			id := fmt.Sprint("call_", rng.IntN(45))
			if got := repeated(id); got != (calls[id] > 1) {
				t.Fatalf("seed %d: %s has %d calls, is repeated: %t", seed, id, calls[id], got)
			}
		}
	}
}

// TestAFewCallsAreLookedUpWithoutAllocating: a request with a few new calls looks up only these, which allocates nothing, however
// long the history is.
func TestAFewCallsAreLookedUpWithoutAllocating(t *testing.T) {
	messages := make([]Message, 5000)
	for i := range messages {
		messages[i].Calls = []string{fmt.Sprint("call_", i)}
	}
	repeated := repeatedCalls(messages)
	if n := testing.AllocsPerRun(maxSearches-1, func() { repeated("call_4999") }); n > 0 {
		t.Errorf("%.0f allocations a search", n)
	}
}
