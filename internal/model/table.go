package model

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
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

// Fallback returns the assumptions for an unknown model: a window that models of recent years have at least, and no
// price, so that nothing is decided or reported in money.
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

// configuredLike returns the configured name of which a name is a variant; of several, the first in sorted order.
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

// entries is the built-in table. Its first lines describe the columns. The lines are sorted.
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

// builtin looks up a model in the built-in table. For an unknown model of a known family, it returns Fallback with the family's
// encoding.
func builtin(name string) (Info, string) {
	if len(name) > maxName {
		return Fallback(), ""
	}
	folded := fold(name)
	for spelling := range spellings(name) {
		line := entry(spelling)
		ending := folded[len(spelling):]
		if original, ok := strings.CutPrefix(line, spelling+"\t="); ok {
			spelling, line = original, entry(original)
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

// family returns the name of the table's entry for all models whose names start with the same letters.
func family(name string) string {
	for i := range len(name) {
		if name[i] < 'a' || name[i] > 'z' {
			return name[:i] + "*"
		}
	}
	return name + "*"
}

// entry returns the line of a name, found by bisection, or an empty string.
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

// parse parses an entry. An unknown number, which is written as a dash, is 0.
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
