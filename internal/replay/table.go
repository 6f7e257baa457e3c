package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/figures"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// WriteTable writes a table with a line for each configuration, and what a reader needs to know about the figures in lines of at most so many
// columns.
func (r *Results) WriteTable(w io.Writer, columns int) error {
	var b strings.Builder
	b.WriteString(r.heading() + "\n\n")
	priced, others := r.split()
	if len(priced.Runs) > 0 {
		priced.write(&b, moneyOf)
	}
	if len(others.Runs) > 0 {
		if len(priced.Runs) > 0 {
			fmt.Fprintf(&b, "\n%s of models without a price, in tokens of input:\n\n", sessions(len(others.Runs)))
		}
		others.write(&b, tokensOf)
	}
	b.WriteString("\n")
	b.WriteString(legend(columns) + "\n")
	for _, note := range r.notes() {
		b.WriteString(strings.Join(terminal.Wrap(note, columns), "\n") + "\n")
	}
	return write(w, b.String()+priceTable(r.prices()))
}

// heading says what was replayed.
func (r *Results) heading() string {
	text := sessions(len(r.Runs))
	if n := r.short(); n > 0 {
		text += fmt.Sprintf(", %d of them long enough to condense", len(r.Runs)-n)
	}
	return text
}

func sessions(n int) string { return counted(n, "session") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figures.Grouped(n) + " " + what + "s"
}

// split returns the results of runs whose costs are known, and those of others.
func (r *Results) split() (priced, others Results) {
	priced.Settings, others.Settings = r.Settings, r.Settings
	for _, run := range r.Runs {
		if slices.ContainsFunc(run, func(r Report) bool { return r.Saved().Unknown }) {
			others.Runs = append(others.Runs, run)
		} else {
			priced.Runs = append(priced.Runs, run)
		}
	}
	return priced, others
}

// measureOf says what runs used without and with the proxy, and how a column shows it.
type measureOf struct {
	amounts func(Report) (without, with float64)
	column  string
	format  func(amount, scale float64) string
}

var (
	moneyOf = measureOf{
		amounts: func(r Report) (without, with float64) { return r.Without.Cost.USD, r.costWith().USD },
		column:  "bill",
		format: func(amount, scale float64) string {
			if scale < 1 {
				return dollars(Money{USD: amount}, 4)
			}
			return dollars(Money{USD: amount}, 2)
		},
	}
	tokensOf = measureOf{
		amounts: func(r Report) (without, with float64) {
			return float64(r.Without.Input), float64(r.With.Input + r.Own.Input)
		},
		column: "tokens",
		format: func(amount, _ float64) string { return short(int(amount)) },
	}
)

// write writes the table.
func (r *Results) write(w io.Writer, m measureOf) {
	without, _ := m.amounts(Total(r.reports(0)))
	rows := [][]string{
		{"", m.column, "saved", "condensations", "first at", "missing", "cost more"},
		{"without Dewpoint", m.format(without, without)},
	}
	for i, s := range r.Settings {
		reports := r.reports(i)
		total := Total(reports)
		before, with := m.amounts(total)
		rows = append(rows, []string{
			printable(s.Name), m.format(with, without), percent(before-with, before), figures.Grouped(total.Condensations), size(total.CondensedAt),
			percent(float64(total.Missing), float64(total.Named)), more(reports, m),
		})
	}
	align(w, rows, 0)
}

// align writes rows in columns. One of them is aligned to the left, the others to the right.
func align(w io.Writer, rows [][]string, left int) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if i > 0 {
				line += "   "
			}
			width := widths[i]
			if i == left {
				width = -width
			}
			line += fmt.Sprintf("%*s", width, cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// more counts the runs that cost more with the proxy.
func more(reports []Report, m measureOf) string {
	n := 0
	for _, r := range reports {
		if without, with := m.amounts(r); rounded(with-without) > 0 {
			n++
		}
	}
	return figures.Grouped(n)
}

func percent(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return strings.Replace(fmt.Sprintf("%.1f%%", 100*part/whole), "-0.0%", "0.0%", 1)
}

// size formats the size of a request.
func size(tokens int) string {
	if tokens == 0 {
		return "-"
	}
	return short(tokens)
}

// legend explains the columns.
func legend(columns int) string {
	var b strings.Builder
	for _, column := range [][2]string{
		{"first at", "tokens of the request at which a session was condensed first (the median)"},
		{"missing", "of what later steps named from earlier messages, what they could no longer see"},
		{"cost more", "sessions that would have cost more with Dewpoint than without; --losers lists them"},
	} {
		fmt.Fprintf(&b, "%-9s  %s\n", column[0], strings.Join(terminal.Wrap(column[1], columns-11), "\n"+strings.Repeat(" ", 11)))
	}
	return b.String()
}

// notes returns what a reader needs to know in addition to the table.
func (r *Results) notes() []string {
	total := r.totals()
	notes := estimates(total, r.reports(0))
	if i := slices.IndexFunc(total, func(t Report) bool { return t.Own.Calls > 0 }); i >= 0 {
		own := total[i].Own
		notes = append(notes, fmt.Sprintf("Bills include Dewpoint's own calls (%s: %s, %s tokens). Here a stand-in answers them, which quotes lines of its "+
			"prompt; a model's summaries read better, and differ in length.", printable(r.Settings[i].Name), counted(own.Calls, "call"), short(own.Input+own.Output)))
	}
	if n := total[0].TooLong; n > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s were larger than the model's context window. A provider refuses them without Dewpoint; here they count "+
			"as answered.", figures.Grouped(n), counted(total[0].Steps, "request")))
	}
	for i, t := range total {
		for _, cause := range slices.Sorted(maps.Keys(t.Failed)) {
			notes = append(notes, fmt.Sprintf("%s: in %s a condensation was due and was not made, or has no summary. docs/headers.md explains the cause, %q.",
				printable(r.Settings[i].Name), counted(t.Failed[cause], "request"), cause))
		}
	}
	return notes
}

func (r *Results) totals() []Report {
	all := make([]Report, len(r.Settings))
	for i := range r.Settings {
		all[i] = Total(r.reports(i))
	}
	return all
}

// estimates says which figures are estimates.
func estimates(total []Report, runs []Report) []string {
	notes := []string{
		"Estimated: tokens are counted with the vocabulary closest to the model's own, and the provider's prompt cache is assumed to be cold when a session begins and never to expire in it.",
	}
	var sizes []int
	for _, r := range runs {
		if r.Estimated > 0 {
			sizes = append(sizes, r.Estimated)
		}
	}
	if len(sizes) > 0 {
		slices.Sort(sizes)
		notes = append(notes, fmt.Sprintf("The logs of %s lack the system prompt or the tools. Their size is taken from the first recorded "+
			"request, less its messages: %s tokens (median).", sessions(len(sizes)), short(sizes[len(sizes)/2])))
	}
	if t := total[0]; t.Recorded > 0 {
		notes = append(notes, fmt.Sprintf("The logs record %s tokens of input where %s are counted here.", short(t.Recorded), short(t.Counted)))
	}
	return notes
}

// priceTable lists the prices that were used, and says how to give those that are missing.
func priceTable(prices map[string]*Price) string {
	rows := [][]string{{"USD per million tokens", "input", "cached", "written", "output", "price of"}}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		p := prices[name]
		if p == nil {
			missing = append(missing, printable(name))
			continue
		}
		rows = append(rows, []string{
			printable(name), price(p.Input), price(p.CachedInput), price(max(p.CacheWrite, p.Input)), price(p.Output), cmp.Or(p.Date, "the configuration"),
		})
	}
	var b strings.Builder
	if len(rows) > 1 {
		b.WriteString("\n")
		align(&b, rows, 0)
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nThere is no price for %s. Give it in a file for --config, such as:\n  models: {%q: {price: {input: 2.0, cached_input: 0.5, output: 8.0}}}\n",
			strings.Join(missing, ", "), missing[0])
	}
	return b.String()
}

// WriteLosers writes the runs that cost more with the proxy, the worst first.
func (r *Results) WriteLosers(w io.Writer) error {
	var b strings.Builder
	for i, s := range r.Settings {
		found := losers(r.reports(i))
		if len(found) == 0 {
			fmt.Fprintf(&b, "%s: no session would have cost more.\n\n", printable(s.Name))
			continue
		}
		fmt.Fprintf(&b, "%s: %s would have cost more.\n\n", printable(s.Name), sessions(len(found)))
		rows := [][]string{{"without", "with", "more", "steps", "condensations", "session"}}
		for _, l := range found {
			rows = append(rows, []string{
				dollars(l.Without.Cost, 4), dollars(l.costWith(), 4), percent(-l.Saved().USD, l.Without.Cost.USD), figures.Grouped(l.Steps),
				figures.Grouped(l.Condensations), printable(l.Run),
			})
		}
		align(&b, rows, 5)
		b.WriteString("\n")
	}
	return write(w, b.String())
}

// WriteRecords writes each condensation with its record.
func (r *Results) WriteRecords(w io.Writer) error {
	var b strings.Builder
	for i, s := range r.Settings {
		for _, run := range r.reports(i) {
			for _, c := range run.Records {
				fmt.Fprintf(&b, "%s, %s, step %d, condensed by %s: %d events hidden, %s to %s tokens, replaced by: %s\n", printable(s.Name),
					printable(run.Run), c.Step, c.Reason, c.Events, figures.Grouped(c.TokensBefore), figures.Grouped(c.TokensAfter), c.Replacement)
				for line := range strings.Lines(record.Printable(c.Record)) {
					b.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
				}
				b.WriteString("\n")
			}
		}
	}
	return write(w, b.String())
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
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

// short formats a number of tokens with three significant digits.
func short(n int) string {
	switch {
	case n < 10_000:
		return figures.Grouped(n)
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
