package account

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Dimensions are what a report can be grouped by.
func Dimensions() []string {
	return []string{"day", "tenant", "model", "agent", "agent_version", "arm"}
}

// Report says what requests cost, with and without Dewpoint.
type Report struct {
	Since string   `json:"since"` // the first day, in UTC
	Until string   `json:"until"` // the last day
	By    []string `json:"by"`
	Rows  []Line   `json:"rows"`
	Total Line     `json:"total"`
}

// Line is what some requests came to. The dimensions that the report is not grouped by are missing.
type Line struct {
	Day     string `json:"day,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Model   string `json:"model,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Version string `json:"agent_version,omitempty"`
	Arm     string `json:"arm,omitempty"`
	Sums
	Own  OwnCalls   `json:"own_calls"`
	Plan Unbilled   `json:"subscriptions"`
	USD  Comparison `json:"usd"`
}

// OwnCalls are the model calls of the proxy's own.
type OwnCalls struct {
	Calls    int64 `json:"calls"`
	Input    int64 `json:"input"`
	Cached   int64 `json:"cached"`
	Output   int64 `json:"output"`
	Unpriced int64 `json:"unpriced"` // calls to models without a known price, which are not in USD
	Charged  Pico  `json:"charged_usd"`
}

// Unbilled are requests of subscriptions, which are no part of the bill.
type Unbilled struct {
	Requests  int64 `json:"requests"`
	Steps     int64 `json:"steps"`
	Sent      int64 `json:"sent"`
	Forwarded int64 `json:"forwarded"`
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached"`
	Output    int64 `json:"output"`
}

// Comparison is the bill with and without Dewpoint.
type Comparison struct {
	Bill    Pico `json:"bill"`    // what upstreams charge, own calls included
	Without Pico `json:"without"` // what they would charge for the same requests
	Saved   Pico `json:"saved"`   // the difference; negative if condensing cost more
}

// CheckDimensions reports a name that is none of the dimensions.
func CheckDimensions(by []string) error {
	for _, name := range by {
		if !slices.Contains(Dimensions(), name) {
			return fmt.Errorf("%.40q is nothing to group by: give any of %s", name, strings.Join(Dimensions(), ", "))
		}
	}
	return nil
}

// NewReport groups rows. by lists dimensions.
func NewReport(since, until string, by []string, rows []Row) Report {
	r := Report{Since: since, Until: until, By: append([]string{}, by...), Rows: []Line{}}
	groups := map[Line]*Line{}
	for i := range rows {
		r.Total.add(&rows[i])
		if len(by) == 0 {
			continue
		}
		name := Line{}
		for _, dimension := range by {
			*name.dimension(dimension) = *rows[i].named(dimension)
		}
		group := groups[name]
		if group == nil {
			copied := name
			group = &copied
			groups[name] = group
		}
		group.add(&rows[i])
	}
	for _, group := range groups {
		r.Rows = append(r.Rows, *group)
	}
	slices.SortFunc(r.Rows, func(a, b Line) int {
		for _, dimension := range by {
			if order := cmp.Compare(*a.dimension(dimension), *b.dimension(dimension)); order != 0 {
				return order
			}
		}
		return 0
	})
	return r
}

func (l *Line) add(r *Row) {
	switch r.Kind {
	case Own:
		o := &l.Own
		o.Calls += r.Requests
		o.Input += r.Input
		o.Cached += r.Cached
		o.Output += r.Output
		o.Unpriced += r.Unpriced
		o.Charged += r.Charged
	case Plan:
		p := &l.Plan
		p.Requests += r.Requests
		p.Steps += r.Steps
		p.Sent += r.Sent
		p.Forwarded += r.Forwarded
		p.Input += r.Input
		p.Cached += r.Cached
		p.Output += r.Output
	default:
		l.Sums.Add(&r.Sums)
	}
	l.USD = Comparison{Bill: l.Charged + l.Own.Charged, Without: l.Charged + l.Sums.Saved()}
	l.USD.Saved = l.USD.Without - l.USD.Bill
}

// Named returns the line's value in a dimension.
func (l *Line) Named(dimension string) string { return *l.dimension(dimension) }

// dimension returns the line's value in a dimension.
func (l *Line) dimension(name string) *string {
	switch name {
	case "day":
		return &l.Day
	case "tenant":
		return &l.Tenant
	case "model":
		return &l.Model
	case "agent":
		return &l.Agent
	case "agent_version":
		return &l.Version
	}
	return &l.Arm
}

// named returns the row's value in a dimension.
func (r *Row) named(dimension string) *string {
	switch dimension {
	case "day":
		return &r.Day
	case "tenant":
		return &r.Tenant
	case "model":
		return &r.Model
	case "agent":
		return &r.Agent
	case "agent_version":
		return &r.Version
	}
	return &r.Arm
}

// WriteCSV writes the report's rows, or its total if it is not grouped, as CSV with a header.
func (r *Report) WriteCSV(out io.Writer) error {
	table := csv.NewWriter(out)
	lines := r.Rows
	if len(r.By) == 0 {
		lines = []Line{r.Total}
	}
	header := slices.Clone(r.By)
	columns(reflect.ValueOf(Line{}), "", func(name, _ string) { header = append(header, name) })
	if err := table.Write(header); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for i := range lines {
		var record []string
		for _, dimension := range r.By {
			record = append(record, plain(*lines[i].dimension(dimension)))
		}
		columns(reflect.ValueOf(lines[i]), "", func(_, value string) { record = append(record, value) })
		if err := table.Write(record); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	table.Flush()
	if err := table.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// columns yields the numbers of a line with their names, which are those in JSON.
func columns(v reflect.Value, prefix string, yield func(name, value string)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch value := v.Field(i).Interface().(type) {
		case Pico:
			yield(prefix+name, value.String())
		case int64:
			yield(prefix+name, strconv.FormatInt(value, 10))
		case string:
		default:
			if !field.Anonymous {
				name += "_"
			}
			columns(v.Field(i), prefix+name, yield)
		}
	}
}

// plain returns a text that a spreadsheet does not take for a formula.
func plain(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
