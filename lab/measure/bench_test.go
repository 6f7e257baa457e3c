package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/lab/bench"
)

func TestBenchFiles(t *testing.T) {
	dir := t.TempDir()
	f := benchFiles{json: filepath.Join(dir, "figures.json"), doc: filepath.Join(dir, "page.md"), plots: dir}
	if err := os.WriteFile(f.doc, []byte(measuredBegin+measuredEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	result := &bench.Result{
		Cells:  []bench.CellResult{{Cell: bench.Cell{Kind: bench.Known, Size: 10_000, Conns: 1}, Targets: []bench.TargetResult{{Name: "x", P50: time.Millisecond}}}},
		Growth: &bench.Growth{Points: []bench.GrowthPoint{{Messages: 2, Bytes: 1000, P50: map[string]time.Duration{"x": time.Millisecond}}}},
	}
	if err := f.write(io.Discard, result); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]string{"page.md": "| known + 2 | 10 KB | 1 |", "bench-history.svg": "<svg", "bench-connections.svg": "<svg"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	var again bench.Result
	text, err := os.ReadFile(f.json)
	if err != nil || json.Unmarshal(text, &again) != nil || len(again.Cells) != 1 || again.Cells[0].Targets[0].P50 != time.Millisecond {
		t.Errorf("%v: %s", err, text)
	}
	f.plots = filepath.Join(dir, "nowhere")
	if f.write(io.Discard, result) == nil {
		t.Error("a folder that is not there was written to")
	}
}
