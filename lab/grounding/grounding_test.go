package grounding

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/ground"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// judged is a line of a real report that was read and judged, with an excerpt of what its writer was shown.
type judged struct {
	Line, Shown string
	Struck      bool // it was struck out against all that was shown
	True        bool // what it names was shown, in whatever form, or follows from that
}

// TestJudgedLines: of the lines that were judged by hand the same ones are struck as when they were read, and at most one in a hundred of the
// true ones.
func TestJudgedLines(t *testing.T) {
	file, err := os.ReadFile("testdata/judged.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines, correct, wrong := 0, 0, 0
	for text := range bytes.Lines(file) {
		var j judged
		if err := json.Unmarshal(text, &j); err != nil {
			t.Fatal(err)
		}
		struck := len(ground.Check(j.Line, j.Shown).Struck) > 0
		if struck != j.Struck {
			t.Errorf("struck %v, it was %v: %q, shown %q", struck, j.Struck, j.Line, j.Shown)
		}
		lines++
		if j.True {
			correct++
			if struck {
				wrong++
			}
		}
	}
	if lines < 300 || 100*wrong > correct {
		t.Errorf("%d lines, %d of them true, %d of those struck", lines, correct, wrong)
	}
}

// TestMeasure: a report is checked against its own run and against another one.
func TestMeasure(t *testing.T) {
	run := func(name, path string) replay.Run {
		encode := func(role, text string) json.RawMessage {
			raw, err := json.Marshal(map[string]string{"role": role, "content": text})
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		return replay.Run{Name: name, Messages: []json.RawMessage{encode("user", "port "+path)},
			Final: encode("assistant", path+" is done\n"+path+" was long\nsecret_key too"+strings.Repeat(".", minReport))}
	}
	var all []Report
	for name, path := range map[string]string{"a": "src/a.go", "b": "src/b.go"} {
		reports, err := Reports(run(name, path))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, reports...)
	}
	struck := 0
	got := Measure(all, func(string, ground.Struck) { struck++ })
	if want := (Result{Own: Figures{2, 0, 6, 4}, Other: Figures{2, 2, 6, 0}}); got != want || struck != 2 {
		t.Errorf("%+v, %d struck", got, struck)
	}
}
