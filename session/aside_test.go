package session_test

import (
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func TestPartedReadsOnlyWhatJoinedWrote(t *testing.T) {
	for _, parts := range [][]string{nil, {"a"}, {"a", "b:c", "12:"}} {
		if got := session.Parted[string](session.Joined(parts)); !slices.Equal(got, parts) {
			t.Errorf("%q became %q", parts, got)
		}
	}
	for _, text := range []string{"0:", "1:a0:", "2:a", "-1:a", "x:a", "1a", "1:ab"} {
		if got := session.Parted[string](text); got != nil {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}
