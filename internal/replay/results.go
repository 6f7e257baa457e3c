package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// Results are the reports of runs, and what they were replayed with. They can be written for people and as JSON.
type Results struct {
	Model     string
	Condenser string                 // its type
	Prices    map[string]model.Price // of each model that was called; the zero Price is unknown
	Runs      []Report
	Total     Report
}

// NewResults returns the results of runs that were replayed with a configuration and a model.
func NewResults(cfg *config.Config, name string, runs []Report) Results {
	r := Results{Model: name, Condenser: cfg.Condenser.Type, Prices: map[string]model.Price{}, Runs: runs, Total: Total(runs)}
	for _, b := range []Bill{r.Total.Without, r.Total.With, r.Total.Own} {
		for _, called := range b.Models {
			info, _ := cfg.ModelFor(called)
			r.Prices[called] = info.Price
		}
	}
	return r
}

// WriteJSON writes the results as JSON, as docs/replay.md describes them.
func (r *Results) WriteJSON(w io.Writer) error {
	type report struct {
		Report
		Saved        Money    `json:"saved_usd"`
		SavedPercent *float64 `json:"saved_percent"` // nil: a price is not known
	}
	of := func(r Report) report {
		out := report{Report: r, Saved: r.Saved()}
		if !out.Saved.Unknown {
			out.SavedPercent = new(rounded(100 * r.SavedShare()))
		}
		return out
	}
	type prices struct {
		Input       float64 `json:"input"`
		CachedInput float64 `json:"cached_input"`
		CacheWrite  float64 `json:"cache_write"`
		Output      float64 `json:"output"`
	}
	out := struct {
		Model     string             `json:"model"`
		Condenser string             `json:"condenser"`
		Prices    map[string]*prices `json:"prices"` // nil: not known
		Runs      []report           `json:"runs"`
		Total     report             `json:"total"`
	}{r.Model, r.Condenser, map[string]*prices{}, []report{}, of(r.Total)}
	for name, p := range r.Prices {
		out.Prices[name] = nil
		if p.Known() {
			out.Prices[name] = new(prices(p))
		}
	}
	for _, run := range r.Runs {
		out.Runs = append(out.Runs, of(run))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// WriteRecords writes each condensation with its record.
func (r *Results) WriteRecords(w io.Writer) error {
	var b strings.Builder
	for _, run := range r.Runs {
		for _, c := range run.Records {
			fmt.Fprintf(&b, "%s, step %d, condensed by %s: %d events hidden, %s to %s tokens, replaced by: %s\n",
				printable(run.Run), c.Step, c.Reason, c.Events, grouped(c.TokensBefore), grouped(c.TokensAfter), c.Replacement)
			for line := range strings.Lines(record.Printable(c.Record)) {
				b.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
			}
			b.WriteString("\n")
		}
	}
	return write(w, b.String())
}

// WriteTable writes a table with a line for each run, their sum, and what a reader needs to know about the figures.
func (r *Results) WriteTable(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "steps\tmessages\tsent\tcached\tforwarded\tcached\tcondensed\town calls\town tokens\twithout\twith\tsaved\tshare\t  run")
	decimals := 4
	if r.Total.Without.Cost.USD >= 1 {
		decimals = 2
	}
	for _, run := range r.Runs {
		row(table, run, decimals)
	}
	total := r.Total
	if total.Run = "1 run"; len(r.Runs) != 1 {
		total.Run = fmt.Sprintf("%d runs", len(r.Runs))
	}
	row(table, total, decimals)
	_ = table.Flush() // a Builder takes everything
	for _, note := range r.notes() {
		b.WriteString("\n" + note)
	}
	return write(w, b.String()+"\n")
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func row(w io.Writer, r Report, decimals int) {
	saved := "-"
	if m := r.Saved(); !m.Unknown {
		saved = fmt.Sprintf("%.1f%%", 100*r.SavedShare())
	}
	fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t  %s\n", r.Steps, r.Messages,
		short(r.Without.Input), share(r.Without), short(r.With.Input), share(r.With), r.Condensations,
		r.Own.Calls, short(r.Own.Input+r.Own.Output), dollars(r.Without.Cost, decimals), dollars(r.costWith(), decimals), dollars(r.Saved(), decimals), saved, printable(r.Run))
}

// notes returns explanations that a reader needs in addition to the table.
func (r *Results) notes() (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)+"\n") }
	switch saved, share := r.Total.Saved(), 100*r.Total.SavedShare(); {
	case saved.Unknown: // a note below says why
	case saved.USD == 0:
		add("With the condenser %s this would have cost the same.", r.Condenser)
	default:
		word := "less"
		if share < 0 {
			word = "more"
		}
		add("With the condenser %s this would have cost %s instead of %s: %.1f%% %s.",
			r.Condenser, dollars(r.Total.costWith(), 2), dollars(r.Total.Without.Cost, 2), math.Abs(share), word)
	}
	add("Tokens and costs are those of the run without Dewpoint (\"sent\", \"without\") and with it (\"forwarded\", \"with\"). \"cached\" is the share that\n" +
		"the provider's prompt cache would have had. \"with\" includes Dewpoint's own calls, which ask for summaries.")
	var known, unknown []string
	for _, name := range slices.Sorted(maps.Keys(r.Prices)) {
		p := r.Prices[name]
		if !p.Known() {
			unknown = append(unknown, name)
			continue
		}
		known = append(known, fmt.Sprintf("%s costs %s per million tokens of input, %s if it is cached, %s if it is written to the cache, and %s for output.",
			printable(name), price(p.Input), price(p.CachedInput), price(max(p.CacheWrite, p.Input)), price(p.Output)))
	}
	if len(known) > 0 {
		add("%s", strings.Join(known, "\n"))
	}
	for _, name := range unknown {
		add("There is no price for %s, so costs are not shown. Give it in USD per million tokens in a configuration for --config:\n"+
			"  models: {%q: {price: {input: 2.0, cached_input: 0.5, output: 8.0}}}", printable(name), name)
	}
	if r.Total.Own.Calls > 0 {
		add("Summaries come from an offline stand-in that quotes lines of its prompt. A model's would read better, and differ in length.")
	}
	if r.Total.TooLong > 0 {
		add("%d of %d requests were larger than the context window of %s as the agent sent them. A provider would refuse them\n"+
			"without Dewpoint; the cost without it counts them as if they had been answered.", r.Total.TooLong, r.Total.Steps, printable(r.Model))
	}
	for _, cause := range slices.Sorted(maps.Keys(r.Total.Failed)) {
		add("In %d of %d requests a condensation was due and failed, or has no summary. The cause is %q, which docs/headers.md explains.",
			r.Total.Failed[cause], r.Total.Steps, cause)
	}
	return notes
}

// printable returns a text from a file on one line, without characters that could move a terminal's cursor.
func printable(text string) string {
	return strings.Join(strings.Fields(record.Printable(text)), " ")
}

// dollars formats an amount, or a dash if it is unknown.
func dollars(m Money, decimals int) string {
	if m.Unknown {
		return "-"
	}
	text := strconv.FormatFloat(math.Abs(m.USD), 'f', decimals, 64)
	if m.USD < 0 && strings.Trim(text, "0.") != "" {
		return "-$" + text
	}
	return "$" + text
}

// price formats the price of a million tokens.
func price(usd float64) string {
	text := strconv.FormatFloat(usd, 'f', -1, 64)
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) < 2 {
		text = strconv.FormatFloat(usd, 'f', 2, 64)
	}
	return "$" + text
}

// share formats the share of a bill's input that came from the cache.
func share(b Bill) string {
	return fmt.Sprintf("%.1f%%", 100*float64(b.Cached)/float64(max(b.Input, 1)))
}

// short formats a number of tokens with three significant digits.
func short(n int) string {
	switch {
	case n < 10_000:
		return grouped(n)
	case n < 999_500:
		return significant(n, 1e3) + "k"
	}
	return significant(n, 1e6) + "M"
}

func significant(n int, unit float64) string {
	value := float64(n) / unit
	digits := 0
	for limit := 100.0; digits < 2 && value < limit-0.5; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}

// grouped formats a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
