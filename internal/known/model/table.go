package model

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Info describes one model. Sizes are in tokens.
type Info struct {
	ContextWindow int    `yaml:"context_window"`
	MaxOutput     int    `yaml:"max_output"`
	Encoding      string `yaml:"encoding"` // EncodingO200k or EncodingCL100k
	Price         Price  `yaml:"price"`

	AlternateRoles bool `yaml:"alternate_roles"` // see config.Upstream
}

// The values of Info.Encoding.
const (
	EncodingO200k  = "o200k_base"
	EncodingCL100k = "cl100k_base"
)

// Fallback returns the assumptions for an unknown model: the smallest window of models of recent years, and no price, so that nothing is
// decided or reported in money.
func Fallback() Info {
	return Info{ContextWindow: 128000, MaxOutput: 16384, Encoding: EncodingO200k}
}

// Table is the table of known models. Configured entries, by name, take precedence over the built-in ones; the zero
// Table has only the built-in ones.
type Table struct{ Configured map[string]Info }

// Lookup returns the entry for a model and its name in the table, or Fallback and an empty name if the model is unknown. It
// accepts different spellings of a name, see spellings. It returns only names in the table, so their number is bounded
// whatever clients send.
func (t Table) Lookup(name string) (Info, string) {
	if info, ok := t.Configured[name]; ok {
		return info, name
	}
	if like, ok := t.configuredLike(name); ok {
		return t.Configured[like], like
	}
	return builtin(name)
}

// Signature is what the signature of sealed reasoning proves to the model's provider.
type Signature string

// The signatures.
const (
	SignatureUnknown Signature = "-"
	SignatureAuthor  Signature = "author" // which model wrote it: it may stand behind any messages
	SignaturePlace   Signature = "place"  // also that nothing before it has changed
)

// SignatureOf returns what the signatures of a built-in model prove, however its entry is configured.
func SignatureOf(name string) Signature {
	if _, known := builtin(name); known != "" {
		return Signature(strings.Split(entries()[known], "\t")[columnSignature])
	}
	return SignatureUnknown
}

// DateOf returns the day on which a built-in model's price was looked up, empty if the model is not known.
func DateOf(name string) string {
	if _, known := builtin(name); known != "" {
		return strings.Split(entries()[known], "\t")[columnDate]
	}
	return ""
}

// configuredLike returns the configured name of which name is a variant. If there are several, it returns the first in sorted order.
func (t Table) configuredLike(name string) (like string, ok bool) {
	if len(t.Configured) == 0 {
		return "", false
	}
	for spelling := range spellings(name) {
		for known := range t.Configured {
			if (!ok || known < like) && fold(known) == spelling {
				like, ok = known, true
			}
		}
		if ok {
			break
		}
	}
	return like, ok
}

// tsv is the built-in table. Its first lines describe the columns.
//
//go:embed models.tsv
var tsv string

// entries returns the lines of the built-in table by name.
var entries = sync.OnceValue(func() map[string]string {
	byName := map[string]string{}
	for line := range strings.Lines(tsv) {
		if name, _, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(line, "#") {
			byName[name] = strings.TrimSuffix(line, "\n")
		}
	}
	return byName
})

// The columns of an entry.
const (
	columnName = iota
	columnWindow
	columnOutput
	columnEncoding
	columnInput
	columnCachedInput
	columnCacheWrite
	columnOutputPrice
	columnSignature
	columnDate
	columnSource
	columns
)

// builtin looks up a model in the built-in table. For an unknown model of a known family, it returns Fallback with the family's
// encoding.
func builtin(name string) (Info, string) {
	if len(name) > maxName {
		return Fallback(), ""
	}
	folded := fold(name)
	for spelling := range spellings(name) {
		line, ok := entries()[spelling]
		if !ok {
			continue
		}
		ending := folded[len(spelling):]
		if original, ok := strings.CutPrefix(line, spelling+"\t="); ok {
			spelling, line = original, entries()[original]
		}
		info := parse(line)
		info.Price.Long = tiers[spelling]
		if slices.ContainsFunc(tariffs, func(tariff string) bool { return strings.Contains(ending, tariff) }) {
			info.Price = Price{}
		}
		return info, spelling
	}
	info := Fallback()
	if line, ok := entries()[family(folded)]; ok {
		info.Encoding = strings.Split(line, "\t")[columnEncoding]
	}
	return info, ""
}

// family returns the name of the table's entry for all models whose names start with the same letters.
func family(name string) string {
	end := strings.IndexFunc(name+"*", func(r rune) bool { return r < 'a' || r > 'z' })
	return name[:end] + "*"
}

// parse parses an entry. An unknown number, which is written as a dash, is 0.
func parse(line string) Info {
	cells := strings.Split(line, "\t")
	tokens := func(i int) int { n, _ := strconv.Atoi(cells[i]); return n }
	usd := func(i int) float64 { v, _ := strconv.ParseFloat(cells[i], 64); return v }
	return Info{
		ContextWindow: tokens(columnWindow), MaxOutput: tokens(columnOutput), Encoding: cells[columnEncoding],
		Price: Price{
			Input: usd(columnInput), CachedInput: usd(columnCachedInput), CacheWrite: usd(columnCacheWrite),
			Output: usd(columnOutputPrice),
		},
	}
}
