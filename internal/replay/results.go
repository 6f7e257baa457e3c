package replay

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// Setting is a configuration under which runs were replayed.
type Setting struct {
	Name   string
	Config *config.Config
}

// Skipped is a file, or a run, that was not replayed.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Results are the reports of runs under one or several configurations. They can be written for people, as JSON and as CSV.
type Results struct {
	Settings []Setting
	Runs     [][]Report // of each run, a report for each setting
	Skipped  []Skipped
}

// reports returns the reports under a setting.
func (r *Results) reports(setting int) []Report {
	all := make([]Report, len(r.Runs))
	for i, run := range r.Runs {
		all[i] = run[setting]
	}
	return all
}

// short counts the runs that were too short under every setting.
func (r *Results) short() (n int) {
	for _, run := range r.Runs {
		if !slices.ContainsFunc(run, func(r Report) bool { return !r.Short }) {
			n++
		}
	}
	return n
}

// Price is the price of a model in US dollars per million tokens.
type Price struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cached_input"`
	CacheWrite  float64 `json:"cache_write"`
	Output      float64 `json:"output"`
	Date        string  `json:"date"` // when it was looked up; empty: it is configured
}

// prices returns the prices of all models that were called; nil if one is not known.
func (r *Results) prices() map[string]*Price {
	found := map[string]*Price{}
	for i, s := range r.Settings {
		total := Total(r.reports(i))
		for _, b := range []Bill{total.Without, total.With, total.Own} {
			for _, name := range b.Models {
				if found[name] == nil {
					found[name] = priceOf(name, s.Config)
				}
			}
		}
	}
	return found
}

func priceOf(name string, cfg *config.Config) *Price {
	info, known := cfg.ModelFor(name)
	if !info.Price.Known() {
		return nil
	}
	p := Price{Input: info.Price.Input, CachedInput: info.Price.CachedInput, CacheWrite: info.Price.CacheWrite, Output: info.Price.Output}
	if _, configured := cfg.Models[known]; !configured {
		p.Date = model.DateOf(name)
	}
	return &p
}

// savings are a report with what follows from it.
type savings struct {
	Report
	Saved        Money    `json:"saved_usd"`
	SavedPercent *float64 `json:"saved_percent"` // nil: a price is not known
}

func savingsOf(r Report) savings {
	out := savings{Report: r, Saved: r.Saved()}
	if !out.Saved.Unknown {
		out.SavedPercent = new(rounded(100 * r.SavedShare()))
	}
	return out
}

// WriteJSON writes the results as JSON, as docs/replay-json.md describes them.
func (r *Results) WriteJSON(w io.Writer) error {
	type underOne struct {
		Config    string    `json:"config"`
		Condenser string    `json:"condenser"` // its type
		CostMore  int       `json:"cost_more"` // runs that cost more with the proxy
		Total     savings   `json:"total"`
		Runs      []savings `json:"runs"`
	}
	out := struct {
		Sessions int               `json:"sessions"`
		Short    int               `json:"too_short"`
		Skipped  []Skipped         `json:"skipped"`
		Prices   map[string]*Price `json:"prices"` // nil: not known
		Configs  []underOne        `json:"configs"`
	}{len(r.Runs), r.short(), slices.Concat([]Skipped{}, r.Skipped), r.prices(), nil}
	for i, s := range r.Settings {
		reports := r.reports(i)
		one := underOne{
			Config: s.Name, Condenser: s.Config.Condenser.Type, CostMore: len(losers(reports)), Total: savingsOf(Total(reports)), Runs: []savings{},
		}
		for _, report := range reports {
			one.Runs = append(one.Runs, savingsOf(report))
		}
		out.Configs = append(out.Configs, one)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// WriteCSV writes a line for each run under each configuration. Amounts are in US dollars, empty if a price is not known.
func (r *Results) WriteCSV(w io.Writer) error {
	lines := [][]string{{
		"config", "session", "models", "steps", "messages", "too_short", "without_usd", "with_usd", "saved_usd", "sent_tokens", "sent_cached_tokens",
		"forwarded_tokens", "forwarded_cached_tokens", "output_tokens", "own_calls", "own_tokens", "condensations", "condensed_at", "named", "missing",
		"estimated_tokens",
	}}
	for i, s := range r.Settings {
		for _, run := range r.reports(i) {
			lines = append(lines, csvLine(s.Name, &run))
		}
	}
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func csvLine(setting string, r *Report) []string {
	usd := func(m Money) string {
		if m.Unknown {
			return ""
		}
		return strconv.FormatFloat(rounded(m.USD), 'f', -1, 64)
	}
	line := []string{setting, r.Run, fmt.Sprint(r.Without.Models), strconv.Itoa(r.Steps), strconv.Itoa(r.Messages), strconv.FormatBool(r.Short)}
	if len(r.Without.Models) == 1 {
		line[2] = r.Without.Models[0]
	}
	line = append(line, usd(r.Without.Cost), usd(r.costWith()), usd(r.Saved()))
	for _, n := range []int{
		r.Without.Input, r.Without.Cached, r.With.Input, r.With.Cached, r.With.Output, r.Own.Calls, r.Own.Input + r.Own.Output, r.Condensations,
		r.CondensedAt, r.Named, r.Missing, r.Estimated,
	} {
		line = append(line, strconv.Itoa(n))
	}
	return line
}

// losers returns the reports of runs that cost more with the proxy than without, the worst first.
func losers(reports []Report) (found []Report) {
	for _, r := range reports {
		if saved := r.Saved(); !saved.Unknown && rounded(saved.USD) < 0 {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b Report) int {
		switch x, y := a.Saved().USD, b.Saved().USD; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return found
}
