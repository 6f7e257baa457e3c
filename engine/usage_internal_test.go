package engine

import "testing"

// TestPlateauShowsThatPromptsAreCut: which series of counts shows that upstream cuts prompts.
func TestPlateauShowsThatPromptsAreCut(t *testing.T) {
	for name, c := range map[string]struct {
		series []countPair
		cut    bool
	}{
		"two requests":                      {[]countPair{{10_000, 4000}, {20_000, 4000}}, false},
		"three, grown by a tenth of theirs": {[]countPair{{10_000, 4000}, {10_200, 4000}, {10_400, 4000}}, true},
		"three, grown by less":              {[]countPair{{10_000, 4000}, {10_200, 4000}, {10_399, 4000}}, false},
		"theirs grows by a tenth":           {[]countPair{{10_000, 4000}, {11_000, 4100}, {12_000, 4100}}, true},
		"theirs grows by more":              {[]countPair{{10_000, 4000}, {11_000, 4101}, {12_000, 4101}}, false},
		"the highest so far":                {[]countPair{{10_000, 4000}, {11_000, 4000}, {12_000, 4001}}, false},
		"the lowest so far":                 {[]countPair{{10_000, 4000}, {11_000, 4000}, {12_000, 3999}}, false},
		"it stays lower":                    {[]countPair{{10_000, 4000}, {11_000, 3999}, {12_000, 3999}}, true},
		"it grows after a fall":             {[]countPair{{10_000, 4000}, {11_000, 3900}, {11_500, 3951}}, false},
		"it falls by three tenths":          {[]countPair{{10_000, 4000}, {11_000, 2800}, {12_000, 2800}}, true},
		"it falls by more":                  {[]countPair{{10_000, 4000}, {11_000, 2799}, {12_000, 2799}}, false},
	} {
		var s plateau
		for _, p := range c.series {
			s = s.next(p)
		}
		if s.cut != c.cut {
			t.Errorf("%s: cut %t", name, s.cut)
		}
	}
}

// TestBelievedCounts: upstream's count must be at least half of ours, and grow at least half as fast.
func TestBelievedCounts(t *testing.T) {
	before := usage{counted: 2000, actual: 2000, last: 2000}
	for name, c := range map[string]struct {
		last            usage
		counted, actual int
		believed        bool
	}{
		"half of the first":      {usage{}, 1000, 500, true},
		"less":                   {usage{}, 1000, 499, false},
		"half of what was added": {before, 3000, 2500, true},
		"less of it":             {before, 3000, 2499, false},
		"shorter than before":    {before, 1500, 750, true},
		"shorter, less":          {before, 1500, 749, false},
	} {
		next, believed := c.last.next(c.counted, c.actual)
		if believed != c.believed || believed != (next.counted == c.counted) || next.last != c.counted {
			t.Errorf("%s: believed %t, next %+v", name, believed, next)
		}
	}
}
