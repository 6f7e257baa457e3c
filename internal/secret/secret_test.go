package secret

import (
	"fmt"
	"testing"
)

func TestValueIsShownOnlyByReveal(t *testing.T) {
	set, empty := Value("sk-verysecret"), Value("")
	if set.Reveal() != "sk-verysecret" {
		t.Errorf("Reveal gave %q", set.Reveal())
	}
	for format, want := range map[string]string{
		"%v": Redacted, "%+v": Redacted, "%#v": `"` + Redacted + `"`, "%q": `"` + Redacted + `"`, "%s": Redacted,
		"%x": Redacted, "%X": Redacted, "%d": Redacted, "%10s": Redacted, "%.3s": Redacted,
	} {
		if got := fmt.Sprintf(format, set); got != want {
			t.Errorf("%s gave %s", format, got)
		}
	}
	if got := fmt.Sprintf("%v %q %#v", empty, empty, empty); got != ` "" ""` {
		t.Errorf("an empty secret gave %s", got)
	}
}
