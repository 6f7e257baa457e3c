package replay_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// results returns the results of two runs, one of which costs more with the proxy.
func results() replay.Results {
	bill := func(name string, calls, input, cached, output int, usd float64) replay.Bill {
		return replay.Bill{Models: []string{name}, Calls: calls, Input: input, Cached: cached, Output: output, Cost: replay.Money{USD: usd}}
	}
	cfg := config.Default()
	cfg.Condenser = catalogue.Default(catalogue.TypeLLM)
	cfg.Models["cheap"] = model.Info{Price: model.Price{Input: 0.125, CachedInput: 0.1, Output: 1}}
	return replay.NewResults(cfg, "gpt-4o", []replay.Report{
		{
			Run: "long\x1b[2J one", Steps: 120, Messages: 242, Condensations: 1, TooLong: 2, Failed: map[string]int{"uncut": 1},
			Without: bill("gpt-4o", 120, 12_345_678, 12_000_000, 9_000, 15.954195),
			With:    bill("gpt-4o", 120, 1_000_000, 900_000, 9_000, 1.465),
			Own:     bill("cheap", 1, 9_500, 0, 499, 0.0016865),
			Records: []replay.Condensation{{
				Step: 80, Reason: "tokens", Events: 50, TokensBefore: 98_000, TokensAfter: 23_999, Replacement: "summary",
				Record: "CURRENT_STATE: all fine\n\x1b[31mred",
			}},
		},
		{
			Run: "short", Steps: 3, Messages: 6, Failed: map[string]int{},
			Without: bill("gpt-4o", 3, 999, 0, 10, 0.0025975), With: bill("gpt-4o", 3, 999, 0, 10, 0.0125975),
		},
	})
}

func TestTable(t *testing.T) {
	r := results()
	var out strings.Builder
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	table, notes, _ := strings.Cut(out.String(), "\n\n")
	want := `
  steps  messages   sent  cached  forwarded  cached  condensed  own calls  own tokens  without   with   saved    share  run
    120       242  12.3M   97.2%      1.00M   90.0%          1          1       9,999   $15.95  $1.47  $14.49    90.8%  long[2J one
      3         6    999    0.0%        999    0.0%          0          0           0    $0.00  $0.01  -$0.01  -385.0%  short
    123       248  12.3M   97.2%      1.00M   89.9%          1          1       9,999   $15.96  $1.48  $14.48    90.7%  2 runs`
	if table != strings.TrimPrefix(want, "\n") {
		t.Errorf("the table is\n%s\nwant%s", table, want)
	}
	for _, says := range []string{
		"With the condenser llm this would have cost $1.48 instead of $15.96: 90.7% less.\n",
		"gpt-4o costs $2.50 per million tokens of input, $1.25 if it is cached, $2.50 if it is written to the cache, and $10.00 for output.",
		"cheap costs $0.125 per million tokens of input, $0.10 if it is cached, $0.125 if it is written to the cache, and $1.00 for output.",
		"stand-in that quotes lines of its prompt", "2 of 123 requests were larger than the context window of gpt-4o", `The cause is "uncut"`,
	} {
		if !strings.Contains(notes, says) {
			t.Errorf("the notes do not say %q:\n%s", says, notes)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("the name of a run can move the cursor")
	}
}

// TestTableWithoutPrices: if the price of a model is unknown, no cost is shown, and the notes say how to configure the price.
func TestTableWithoutPrices(t *testing.T) {
	r := replay.NewResults(config.Default(), "my-model", []replay.Report{{
		Run: "small", Steps: 1, Messages: 1, Without: replay.Bill{Models: []string{"my-model"}, Calls: 1, Input: 10, Cost: replay.Money{Unknown: true}},
		With: replay.Bill{Models: []string{"my-model"}, Calls: 1, Input: 10, Cost: replay.Money{Unknown: true}},
	}})
	var out strings.Builder
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"       -     -      -      -  small\n", "       -     -      -      -  1 run\n", "There is no price for my-model", `models: {"my-model": {price: {input: 2.0, cached_input: 0.5, output: 8.0}}}`} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in\n%s", says, &out)
		}
	}
	if strings.Contains(out.String(), "stand-in") || strings.Contains(out.String(), "costs $") {
		t.Errorf("needless notes:\n%s", &out)
	}
	out.Reset()
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{`"usd": null`, `"saved_usd": null`, `"saved_percent": null`, `"my-model": null`} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in\n%s", says, &out)
		}
	}
}

// TestTableReportsALoss: a loss is reported as a loss.
func TestTableReportsALoss(t *testing.T) {
	r := results()
	r = replay.NewResults(config.Default(), "gpt-4o", r.Runs[1:])
	var out strings.Builder
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"$0.0026  $0.0126  -$0.0100  -385.0%  1 run\n", "this would have cost $0.01 instead of $0.00: 385.0% more.\n"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in\n%s", says, &out)
		}
	}
}

func TestRecords(t *testing.T) {
	r := results()
	var out strings.Builder
	if err := r.WriteRecords(&out); err != nil {
		t.Fatal(err)
	}
	want := "long[2J one, step 80, condensed by tokens: 50 events hidden, 98,000 to 23,999 tokens, replaced by: summary\n" +
		"  | CURRENT_STATE: all fine\n  | [31mred\n\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// TestJSONIsDocumented: the results have the keys of the example in docs/replay.md, and no others.
func TestJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## JSON\n")
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(section)
	if example == nil {
		t.Fatal("docs/replay.md has no example of the JSON")
	}
	r := results()
	var out strings.Builder
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	got, want := keys(t, out.String()), keys(t, example[1])
	if !slices.Equal(got, want) {
		t.Errorf("the results have the keys\n%s\nand docs/replay.md\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var values struct {
		Runs []struct {
			Without struct{ USD float64 }
			Saved   float64 `json:"saved_usd"`
			Percent float64 `json:"saved_percent"`
		}
		Total struct{ Steps int }
	}
	if err := json.Unmarshal([]byte(out.String()), &values); err != nil {
		t.Fatal(err)
	}
	if v := values.Runs; len(v) != 2 || v[0].Without.USD != 15.954195 || v[0].Saved != 14.4875085 || v[1].Saved != -0.01 || values.Total.Steps != 123 {
		t.Errorf("%+v", values)
	}
}

// keys returns the paths of all keys in a JSON text, those of lists once. Names of models and causes are not keys.
func keys(t *testing.T, text string) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	found := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if path == ".prices" {
					key = "*"
				}
				if strings.HasSuffix(path, ".failed") {
					continue
				}
				found[path+"."+key] = true
				walk(path+"."+key, value)
			}
		case []any:
			for _, value := range v {
				walk(path+"[]", value)
			}
		}
	}
	walk("", v)
	return slices.Sorted(maps.Keys(found))
}

func TestTotal(t *testing.T) {
	a := replay.Report{Steps: 2, Own: replay.Bill{Models: []string{"b"}, Calls: 1, Cost: replay.Money{USD: 1}}, Failed: map[string]int{"x": 1}}
	b := replay.Report{Steps: 3, Own: replay.Bill{Models: []string{"a", "b"}, Calls: 2, Cost: replay.Money{Unknown: true}}, Failed: map[string]int{"x": 1, "y": 2}}
	got := replay.Total([]replay.Report{a, b})
	if got.Steps != 5 || got.Own.Calls != 3 || !slices.Equal(got.Own.Models, []string{"a", "b"}) || !got.Own.Cost.Unknown || got.Without.Cost.Unknown ||
		fmt.Sprint(got.Failed) != "map[x:2 y:2]" || !got.Saved().Unknown {
		t.Errorf("%+v", got)
	}
}
