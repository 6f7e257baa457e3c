package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sample is a run with figures of the test's own.
func sample() *Result {
	target := func(name string, p50 time.Duration, ratio float64) TargetResult {
		return TargetResult{
			Name: name, Requests: 100, P50: p50, Ratio: Spread{ratio, ratio / 2, ratio * 2}, CPU: p50 / 2, CPURatio: Spread{ratio, ratio, ratio},
		}
	}
	cell := func(kind Kind, conns int) CellResult {
		return CellResult{Cell: Cell{Kind: kind, Size: 10_000, Conns: conns}, Targets: []TargetResult{
			target(nameBare, 100*time.Microsecond, 1), target(nameNginx, 90*time.Microsecond, 0.9),
			target(nameEmbedded, 240*time.Microsecond, 2.4), target(nameRedis, 510*time.Microsecond, 5.1),
		}}
	}
	messages := cell(Known, 1)
	messages.API, messages.Targets[2].OverChat, messages.Targets[3].OverChat = Messages, Spread{1.1, 0.9, 1.2}, Spread{1.4, 1.2, 1.9}
	return &Result{
		Machine: "a CPU, 2 cores, 8 GB of memory; linux/amd64 6.1; go1.26; nginx 1.22", Load: "0.10",
		Took: 9 * time.Minute, Missing: []string{"something: not installed"},
		Cells: []CellResult{cell(FirstSeen, 1), cell(Known, 8), cell(Known, 1), messages},
		Streaming: &Streaming{
			Delays: []Delay{
				{Streams: 16, Name: nameNginx, P50: 100_000, P99: 200_000, Ratio: Spread{1, 1, 1}},
				{Streams: 16, Name: nameEmbedded, P50: 210_000, P99: 300_000, Ratio: Spread{2.1, 2, 2.2}},
			},
			Gone: []Gone{
				{Name: nameNginx, Phase: "before headers", Tries: 5, P50: 100_000, Worst: 200_000},
				{Name: nameEmbedded, Phase: "before headers", Tries: 5, P50: 100_000, Worst: 200_000},
				{Name: nameRedis, Phase: "before headers", Tries: 5, Untold: 1, P50: 100_000, Worst: 200_000},
			},
		},
		Memory: &Memory{
			Rows:     []MemoryRow{{Situation: "idle", Conns: 1000, Before: 30 << 20, Peak: 70 << 20, Held: 60 << 20, After: 50 << 20, Served: 100, P99: 2_000_000, Quiet: 1_500_000}},
			Overload: Overload{Budget: fullAt, Conns: 64, Size: 4_000_000, Served: 16, Refused: 112, Peak: 90 << 20},
		},
	}
}

func TestMarkdown(t *testing.T) {
	var got bytes.Buffer
	sample().Markdown(&got)
	path := filepath.Join("testdata", "report.md")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("other tables than %s (-update rewrites it):\n%s", path, got.Bytes())
	}
}

func TestBudgets(t *testing.T) {
	if got := budgetOf(Known, nameRedis, 100_000); got != 9 {
		t.Errorf("got %v", got)
	}
	if got := budgetOf(Known, nameNginx, 100_000) + budgetOf(Known, nameEmbedded, 7); got != 0 {
		t.Errorf("got %v", got)
	}
	if got := cpuBudgetOf(Cell{Known, 4_000_000, 8, ""}, nameEmbedded); got != 9 {
		t.Errorf("got %v", got)
	}
}

func TestStatistics(t *testing.T) {
	if got := quantile([]int{5, 1, 3, 2, 4}, 0.5); got != 3 {
		t.Errorf("median %d", got)
	}
	if got := quantile([]int{1, 2, 3, 4}, 0.99); got != 4 {
		t.Errorf("p99 %d", got)
	}
	if quantile([]int(nil), 0.5) != 0 || spread(nil) != (Spread{}) {
		t.Error("of nothing comes something")
	}
	if got := spread([]float64{4, 1, 3, 2}); got != (Spread{2.5, 1, 4}) {
		t.Errorf("%v", got)
	}
}

func TestRecognised(t *testing.T) {
	for strange, want := range map[[2]int]bool{{0, 100}: true, {10, 100}: true, {11, 100}: false, {1, 8}: true, {2, 8}: false} {
		c := CellResult{Targets: []TargetResult{{Name: nameBare, Requests: 100}, {Name: nameEmbedded, Strange: strange[0], Requests: strange[1]}}}
		if got := c.recognised() == nil; got != want {
			t.Errorf("%d of %d: %v", strange[0], strange[1], got)
		}
	}
}
