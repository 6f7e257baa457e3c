package engine

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// TestMayShrink: a request that overflowed is made smaller three times at most, and only if its history may be changed.
func TestMayShrink(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Turn)
		may    bool
	}{
		"the first time":        {func(*Turn) {}, true},
		"the third time":        {func(t *Turn) { t.relief.tries = 2 }, true},
		"a fourth time":         {func(t *Turn) { t.relief.tries = 3 }, false},
		"the client opted out":  {func(t *Turn) { t.in.Wish = WishOff }, false},
		"the tenant observes":   {func(t *Turn) { t.in.Tenant.Observe = true }, false},
		"no condenser":          {func(t *Turn) { t.in.Tenant.Condenser = condense.Noop{} }, false},
		"upstream refused that": {func(t *Turn) { t.relief.verbatim = true }, false},
		"refused earlier":       {func(t *Turn) { t.relief.verbatim, t.relief.withheld = true, &projection{} }, true},
	} {
		turn := Turn{}
		turn.in.Tenant = &Tenant{Condenser: condense.AmortizedForgetting{}}
		c.change(&turn)
		if got := turn.mayShrink(); got != c.may {
			t.Errorf("%s: %t", name, got)
		}
	}
}
