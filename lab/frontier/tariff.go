package frontier

import (
	"context"
	"fmt"
	"io"
)

// Tariff is a provider's prices.
type Tariff struct {
	Name   string
	Prices Prices
}

// Tariffs lists those that providers have.
func Tariffs() []Tariff {
	return []Tariff{
		{"10% reads", Prices{Read: 0.1, Write: 1, Output: 6}},
		{"10% reads, 125% writes", Prices{Read: 0.1, Write: 1.25, Output: 5}},
		{"5% reads, 125% writes", Prices{Read: 0.05, Write: 1.25, Output: 5}},
		{"25% reads", Prices{Read: 0.25, Write: 1, Output: 4}},
		{"50% reads", Prices{Read: 0.5, Write: 1, Output: 4}},
		{"no discount", Prices{Read: 1, Write: 1, Output: 5}},
	}
}

// WriteTariffs plays the runs under `excerpts` by price at each tariff and writes a table.
func WriteTariffs(ctx context.Context, w io.Writer, runs []*Run, tariffs []Tariff) error {
	fmt.Fprintln(w, "| prices | saved | with re-reads | missing | runs that cost over 1% more, the worst | condensations | saved and missing, every other run | the others | dialogues |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, t := range tariffs {
		all, err := play(ctx, runs, Rules(t.Prices)[0], t.Prices)
		if err != nil {
			return err
		}
		writeRow(w, t.Name, all)
	}
	return nil
}
