package proxy

import "testing"

func TestControlCharactersBecomeSpaces(t *testing.T) {
	for value, want := range map[string]string{
		"\x00|\x1f|\x7f": " | | ", "\t| |~|\x80|\xff": "\t| |~|\x80|\xff",
	} {
		if got := cleaned(value); got != want {
			t.Errorf("%q became %q", value, got)
		}
	}
}
