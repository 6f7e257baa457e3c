package tokenize

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// TestCountIsLinear covers every shape of text, not only those that are hard to split.
func TestCountIsLinear(t *testing.T) {
	quick.Alone(t)
	for _, s := range eachSubject(t) {
		t.Run(s.Name(), func(t *testing.T) { lineartest.Check(t, func(text string) { s.Count(text) }) })
	}
}
