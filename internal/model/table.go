package model

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

// Info is what one model holds, in tokens, and what it costs.
type Info struct {
	ContextWindow int    `yaml:"context_window"`
	MaxOutput     int    `yaml:"max_output"`
	Encoding      string `yaml:"encoding"` // EncodingO200k or EncodingCL100k
	Price         Price  `yaml:"price"`

	AlternateRoles bool `yaml:"alternate_roles"` // see config.Upstream
}

// The vocabularies that Info.Encoding may name.
const (
	EncodingO200k  = "o200k_base"
	EncodingCL100k = "cl100k_base"
)

// Fallback returns what is assumed of an unknown model: a window that the models of recent years have at least, and no
// price, so that nothing is decided or reported in money.
func Fallback() Info {
	return Info{ContextWindow: 128000, MaxOutput: 16384, Encoding: EncodingO200k}
}

// Table is what is known of models: the entries of a configuration, by the names in it, over the built-in ones. The zero
// Table has the built-in ones only.
type Table struct{ Configured map[string]Info }

// Lookup returns what is known of a request's model, and the name that it has in the table; Fallback and an empty name if
// the model is unknown. How a client spells the name does not matter, see spellings. There are only as many names as the
// table has entries, whatever clients send.
func (t Table) Lookup(name string) (Info, string) {
	if info, ok := t.Configured[name]; ok {
		return info, name
	}
	if like, ok := t.configuredLike(name); ok {
		return t.Configured[like], like
	}
	return builtin(name)
}

// configuredLike finds the configured name that a request's model is a variant of; the first of several, sorted.
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

// entries is the built-in table: see its first lines for the columns. Its lines are sorted.
//
//go:embed models.tsv
var entries string

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
	columnDate
	columnSource
	columns
)

// builtin looks a model up in the built-in table. Of an unknown model that belongs to a known family, the encoding is known.
func builtin(name string) (Info, string) {
	if len(name) > maxName {
		return Fallback(), ""
	}
	folded := fold(name)
	for spelling := range spellings(name) {
		line, ending := entry(spelling), folded[len(spelling):]
		if of, ok := strings.CutPrefix(line, spelling+"\t="); ok {
			spelling, line = of, entry(of)
		}
		if line == "" {
			continue
		}
		info := parse(line)
		if slices.ContainsFunc(tariffs(), func(tariff string) bool { return strings.Contains(ending, tariff) }) {
			info.Price = Price{}
		}
		return info, spelling
	}
	info := Fallback()
	if line := entry(family(folded)); line != "" {
		info.Encoding = strings.Split(line, "\t")[columnEncoding]
	}
	return info, ""
}

// family is the name under which the table has what is known of all models whose name begins alike.
func family(name string) string {
	for i := range len(name) {
		if name[i] < 'a' || name[i] > 'z' {
			return name[:i] + "*"
		}
	}
	return name + "*"
}

// entry finds the line of a name, by bisection; empty if there is none.
func entry(name string) string {
	low, high := 0, len(entries)
	for low < high {
		start := low + strings.LastIndexByte(entries[low:(low+high)/2], '\n') + 1
		end := start + strings.IndexByte(entries[start:], '\n')
		key, _, _ := strings.Cut(entries[start:end], "\t")
		switch {
		case key == name:
			return entries[start:end]
		case key < name:
			low = end + 1
		default:
			high = start
		}
	}
	return ""
}

// parse reads an entry. A number that is not known is written as a dash, and is 0.
func parse(line string) Info {
	var cells [columns]string
	for i := range cells {
		cells[i], line, _ = strings.Cut(line, "\t")
	}
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
