package tokenize

import (
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

func TestCountAllocatesNothingForTokens(t *testing.T) {
	quick.Alone(t)
	texts := map[string]string{
		"code":  strings.Repeat("func (e *Encoder) Count(text string) int {\n\treturn len(text)\n}\n", 50),
		"prose": strings.Repeat("It isn't the heat, it's the humidity. ", 50),
		"mixed": strings.Repeat("Привет, 世界! e\u0301 👍🏽 ½ zxqvbnm\r\n", 50),
		"piece": strings.Repeat("etaoinshrdlu", 1000),
		"run":   strings.Repeat("=", 1<<15),
	}
	for _, s := range eachSubject(t) {
		for name, text := range texts {
			count := func() { s.Count(text) }
			if n := testing.AllocsPerRun(10, count); n > 0 {
				t.Errorf("%s, %s: %v allocations", s.Name(), name, n)
			}
		}
	}
}

func TestEncoderKeepsNoLargeScratch(t *testing.T) {
	s := eachSubject(t)[0]
	e := newEncoder(s.vocabulary, s.classes, s.split)
	e.Count("zxqvbnm")
	if len(e.scratch) != 1 {
		t.Fatal("scratch for a small piece was not kept")
	}
	large := <-e.scratch
	large.grow(2 * windowBytes)
	e.scratch <- large
	e.Count("zxqvbnm")
	if len(e.scratch) != 0 {
		t.Error("scratch for a large piece was kept")
	}
}

// Concurrent users of one new registry load each vocabulary once, and their counts agree.
func TestRegistryAndEncoderAreConcurrent(t *testing.T) {
	registry := New()
	text := strings.Repeat("Concurrent zxqvbnm 漢字かな交じり文, isn't it? ", 20)
	const users = 8
	encoders, counts := make([]*Encoder, users), make([]int, users)
	var wait sync.WaitGroup
	for i := range users {
		wait.Go(func() {
			e, err := registry.Encoder(O200k)
			if err != nil {
				t.Error(err)
				return
			}
			encoders[i] = e
			for range 20 {
				counts[i] += e.Count(text)
			}
		})
	}
	wait.Wait()
	for i := range users {
		if encoders[i] != encoders[0] || counts[i] != counts[0] || counts[i] == 0 {
			t.Errorf("user %d: encoder %p and %d tokens; the first has %p and %d", i, encoders[i], counts[i], encoders[0], counts[0])
		}
	}
}
