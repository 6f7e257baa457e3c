package soak

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// mark is what every generated text carries, in each of its lines: whose it is.
type mark struct {
	Tenant int // shared if two tenants hold the same text
	Family int // a conversation with its sub-agents; of a shared text the number of the group
	Number int // of the text in its family
}

// shared is the tenant of texts that agents of two tenants begin with.
const shared = 999

func (m mark) String() string { return fmt.Sprintf("mk-t%d-f%d-n%d-km", m.Tenant, m.Family, m.Number) }

var markNumbers = regexp.MustCompile(`^\d+-f\d+-n\d+$`)

// marksIn gives each mark in the text once, wherever it ended up: in messages and summaries. A mark that was cut is
// none.
func marksIn(text []byte) map[string]bool {
	found := map[string]bool{}
	for _, part := range bytes.Split(text, []byte("mk-t"))[1:] {
		if numbers, _, whole := bytes.Cut(part, []byte("-km")); whole && markNumbers.Match(numbers) {
			found["mk-t"+string(numbers)+"-km"] = true
		}
	}
	return found
}

// parseMark reads what marksIn found.
func parseMark(text string) mark {
	var m mark
	_, _ = fmt.Sscanf(text, "mk-t%d-f%d-n%d-km", &m.Tenant, &m.Family, &m.Number)
	return m
}

// author writes the texts of one family, from its own source of chance.
type author struct {
	tenant, family int
	number         int
	chance         *rand.Rand
}

func (a *author) mark() mark {
	a.number++
	return mark{a.tenant, a.family, a.number}
}

var words = strings.Fields(`parcel ledger window harbour signal orbit meadow timber copper lantern river engine quartz
	saddle violet anchor bridge canyon desert ember forest glacier hollow island jungle kernel lagoon marble nectar opal
	prairie quiver ridge summit tundra upland valley willow zenith must never always check deploy rollback index`)

// text writes so many lines, each with the mark.
func (a *author) text(lines int) string {
	var b strings.Builder
	m := a.mark()
	for i := range lines {
		if i > 0 {
			b.WriteString([]string{"\n", "\n\n"}[a.chance.IntN(2)])
		}
		fmt.Fprintf(&b, "%s line %d of /srv/%s/part%d.go:", m, i, m, i)
		for range 4 + a.chance.IntN(12) {
			b.WriteString(" " + words[a.chance.IntN(len(words))])
		}
	}
	return b.String()
}
