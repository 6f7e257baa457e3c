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
	f := benchFiles{json: filepath.Join(dir, "figures.json"), doc: filepath.Join(dir, "page.md")}
	if err := os.WriteFile(f.doc, []byte(measuredBegin+measuredEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	result := &bench.Result{
		Cells: []bench.CellResult{{Cell: bench.Cell{Kind: bench.Known, Size: 10_000, Conns: 1}, Targets: []bench.TargetResult{{Name: "x", P50: time.Millisecond}}}},
	}
	if err := f.write(io.Discard, result); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.doc); err != nil || !strings.Contains(string(text), "### Machine") {
		t.Errorf("%v: %s", err, text)
	}
	var again bench.Result
	text, err := os.ReadFile(f.json)
	if err != nil || json.Unmarshal(text, &again) != nil || len(again.Cells) != 1 || again.Cells[0].Targets[0].P50 != time.Millisecond {
		t.Errorf("%v: %s", err, text)
	}
	f.json = filepath.Join(dir, "nowhere", "figures.json")
	if f.write(io.Discard, result) == nil {
		t.Error("a folder that is not there was written to")
	}
}
