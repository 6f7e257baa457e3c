package ui

import (
	"fmt"
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
)

// Days is a chart of what was saved a day: gains above the axis, losses below it.
type Days struct {
	Class         string
	Width, Height int
	Zero          float64
	Label         string // what it shows, in words
	Bars          []DayBar
}

// DayBar is a day. A label that has no room is empty.
type DayBar struct {
	X, Y, W, H     float64
	LabelX, LabelY float64
	Loss           bool
	Title          string
	Value, Day     string
}

// daysForm is the measure of a chart of days.
type daysForm struct {
	class         string
	width, height int
}

// The forms of a chart of days, for wide and for narrow screens.
var (
	wideDays   = daysForm{"wide", 1140, 200}
	narrowDays = daysForm{"narrow", 340, 200}
)

const (
	daysTop    = 16 // room for a gain's label
	daysBottom = 34 // room for a loss's label, and the days
	labelRoom  = 44 // of one label
	barShare   = 0.78
	leastBar   = 1.5 // height of a day with any saving, so that it is seen
)

// chartsOf returns the chart in both forms, or why there is none.
func chartsOf(since, until time.Time, lines []account.Line) (charts []Days, empty string) {
	values, changed := map[string]account.Pico{}, false
	for i := range lines {
		values[lines[i].Day] = lines[i].USD.Saved
		changed = changed || lines[i].USD.Saved != 0
	}
	if !changed {
		return nil, "Nothing was saved or lost in these days: no request with a price was condensed. Short histories are not condensed, subscriptions have no bill, and models need a known price."
	}
	return []Days{wideDays.chart(since, until, values), narrowDays.chart(since, until, values)}, ""
}

// chart draws the days from since to until.
func (f daysForm) chart(since, until time.Time, values map[string]account.Pico) Days {
	var days []time.Time
	for day, last := since.UTC().Truncate(24*time.Hour), until.UTC(); !day.After(last); day = day.AddDate(0, 0, 1) {
		days = append(days, day)
	}
	saved := make([]float64, len(days))
	most, least, total := 0, 0, account.Pico(0)
	for i, day := range days {
		value := values[day.Format(time.DateOnly)]
		saved[i] = value.USD()
		total += value
		if saved[i] > saved[most] {
			most = i
		}
		if saved[i] < saved[least] {
			least = i
		}
	}
	high, low := max(saved[most], 0), min(saved[least], 0)
	room := float64(f.height - daysTop - daysBottom)
	zero := daysTop + room*high/(high-low)
	slot := float64(f.width) / float64(len(days))
	each := max(int(math.Ceil(labelRoom/slot)), 1)
	out := Days{
		Class: f.class, Width: f.width, Height: f.height, Zero: zero,
		Label: fmt.Sprintf("Saved a day from %s to %s: %s in all, %s at most, %s at least", dayName(days[0]), dayName(days[len(days)-1]), signed(total.USD()), usd(high), usd(saved[least])),
	}
	for i, day := range days {
		height := math.Abs(saved[i]) * room / (high - low)
		if saved[i] != 0 {
			height = max(height, leastBar)
		}
		b := DayBar{
			X: (float64(i) + (1-barShare)/2) * slot, Y: zero - height, W: slot * barShare, H: height, LabelY: zero - height - 4, Loss: saved[i] < 0,
			Title: dayName(day) + ": " + usd(saved[i]),
		}
		middle := (float64(i) + 0.5) * slot
		b.LabelX = min(max(middle, labelRoom/2), float64(f.width)-labelRoom/2)
		if b.Loss {
			b.Y, b.LabelY = zero, zero+height+11
		}
		if saved[i] != 0 && (each == 1 || i == most || i == least) {
			b.Value = short(saved[i])
		}
		if each == 1 || (len(days)-1-i)%each == each/2 && b.LabelX == middle { // not at the edges
			b.Day = day.Format("2 Jan")
		}
		out.Bars = append(out.Bars, b)
	}
	return out
}

func dayName(t time.Time) string { return t.Format("2 January") }

// short writes an amount of dollars in at most seven characters or so.
func short(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 100:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	case abs >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1g", v)
}
