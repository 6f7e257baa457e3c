package engine

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// TestMayShrink: a request that overflowed is made smaller three times at most, and only if its history may be changed.
func TestMayShrink(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Form)
		may    bool
	}{
		"the first time":        {func(*Form) {}, true},
		"the third time":        {func(f *Form) { f.relief.tries = 2 }, true},
		"a fourth time":         {func(f *Form) { f.relief.tries = 3 }, false},
		"the client opted out":  {func(f *Form) { f.asked.wish = WishOff }, false},
		"the tenant observes":   {func(f *Form) { f.turn.in.Tenant.Observe = true }, false},
		"no condenser":          {func(f *Form) { f.turn.in.Tenant.Condenser = condense.Noop{} }, false},
		"upstream refused that": {func(f *Form) { f.relief.verbatim = true }, false},
		"refused earlier":       {func(f *Form) { f.relief.verbatim, f.relief.withheld = true, &projection{} }, true},
	} {
		f := Form{turn: &Turn{}}
		f.turn.in.Tenant = &Tenant{Condenser: condense.AmortizedForgetting{}}
		c.change(&f)
		if got := f.mayShrink(); got != c.may {
			t.Errorf("%s: %t", name, got)
		}
	}
}
