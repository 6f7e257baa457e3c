package record

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Bounds of a ledger.
const (
	ledgerEventBytes = 64 << 10  // of one text, half of them from its beginning and half from its end
	ledgerTerms      = 16 << 10  // terms collected
	ledgerChecks     = 2048      // terms looked at, best first
	ledgerBytes      = 512 << 10 // of the record, when looking for a term
)

var termTitles = [termKinds]string{"paths", "urls", "ids", "names"}

// termWeights say how likely a value of each kind is named again: names, paths and ids are, URLs hardly ever.
var termWeights = [termKinds]int{6, 2, 6, 6}

// Ledger collects exact values (paths, URLs, ids, identifiers) from what is forgotten, and
// lists those that would be lost. The same input gives the same ledger.
type Ledger struct {
	terms map[string]*term
	known map[string]bool
	step  int
}

type term struct {
	text  string
	kind  termKind
	count int
	last  int // step in which it was last seen
}

// NewLedger gives an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{terms: map[string]*term{}, known: map[string]bool{}}
}

// Forget adds the values of a message that is forgotten. Messages come oldest first.
func (l *Ledger) Forget(c session.Content) {
	l.step++
	eachText(c, func(text string) {
		scanTerms(bound(text), func(kind termKind, text string) {
			t := l.terms[text]
			if t == nil && len(l.terms) < ledgerTerms {
				t = &term{text: text, kind: kind}
				l.terms[text] = t
			}
			if t != nil {
				t.count, t.last = t.count+1, l.step
			}
		})
	})
}

// Keep adds the values of a message that the view still shows: they are not lost.
func (l *Ledger) Keep(c session.Content) {
	eachText(c, func(text string) {
		scanTerms(bound(text), func(_ termKind, text string) {
			if l.terms[text] != nil {
				l.known[text] = true
			}
		})
	})
}

// eachText gives the texts of a message in which values are looked for. Ids of tool calls are none: they are of no use
// once the call is gone.
func eachText(c session.Content, f func(string)) {
	f(c.Text)
	for _, call := range c.Calls {
		f(Unescape(bound(call.Arguments)))
	}
}

// Unescape makes JSON's escapes in strings what they stand for, as far as they separate words.
func Unescape(json string) string {
	if strings.IndexByte(json, '\\') < 0 {
		return json
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\n", `\"`, `"`, `\/`, "/").Replace(json)
}

// bound cuts a text that is too long. What is cut inside a term gives another term; that is harmless at this length.
func bound(text string) string {
	if len(text) <= ledgerEventBytes {
		return text
	}
	return text[:ledgerEventBytes/2] + "\n" + text[len(text)-ledgerEventBytes/2:]
}

// Text lists the values that neither the record nor what was kept names, best first, within a number of tokens: one line
// for each kind. It is empty if there are none.
func (l *Ledger) Text(record string, tokens int, count func(string) int) string {
	record = record[:min(len(record), ledgerBytes)]
	var chosen []*term
	used := 0
	for i, t := range l.ranked() {
		if i == ledgerChecks {
			break
		}
		if l.known[t.text] || strings.Contains(record, t.text) {
			continue
		}
		cost := count(t.text) + 1 // its separator
		if used+cost > tokens {
			break
		}
		chosen, used = append(chosen, t), used+cost
	}
	return fitLines(chosen, tokens, count)
}

// ranked is the terms by what their loss would cost: by kind, by how often and how recently they were used.
func (l *Ledger) ranked() []*term {
	terms := make([]*term, 0, len(l.terms))
	for _, t := range l.terms {
		terms = append(terms, t)
	}
	slices.SortFunc(terms, func(a, b *term) int {
		if d := l.score(b) - l.score(a); d != 0 {
			return d
		}
		if a.last != b.last {
			return b.last - a.last
		}
		return strings.Compare(a.text, b.text)
	})
	return terms
}

func (l *Ledger) score(t *term) int {
	return 3*termWeights[t.kind] + 2*min(bits.Len(uint(t.count)), 5) + 8*t.last/max(l.step, 1)
}

// fitLines leaves out the last of the terms until what they make, titles included, has no more than that many tokens.
func fitLines(terms []*term, tokens int, count func(string) int) string {
	for len(terms) > 0 {
		text := lines(terms)
		if count(text) <= tokens {
			return text
		}
		terms = terms[:len(terms)-1-len(terms)/10]
	}
	return ""
}

func lines(terms []*term) string {
	var groups [termKinds][]string
	for _, t := range terms {
		groups[t.kind] = append(groups[t.kind], t.text)
	}
	var out []string
	for kind, group := range groups {
		if len(group) > 0 {
			out = append(out, termTitles[kind]+": "+strings.Join(group, ", "))
		}
	}
	return strings.Join(out, "\n")
}
