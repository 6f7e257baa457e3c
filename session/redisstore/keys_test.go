package redisstore

import (
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestIndexed: indexed returns the same keys as place and trace.
func TestIndexed(t *testing.T) {
	k, a, b, c := keys{"dp:"}, session.Hash{1}, session.Hash{2, 0xff}, session.Hash{}
	want := []string{k.place(a), k.place(b), k.trace(b), k.trace(c)}
	if got := k.indexed([]session.Hash{a, b}, []session.Hash{b, c}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := k.indexed(nil, nil); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}
