package replay_test

import (
	"encoding/json"
	"fmt"
	"io"
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

// results returns the results of three runs under two configurations. Under the first, one of the runs costs more with the proxy, and one has no
// price.
func results() replay.Results {
	bill := func(name string, calls, input, cached, output int, usd float64) replay.Bill {
		return replay.Bill{Models: []string{name}, Calls: calls, Input: input, Cached: cached, Output: output, Cost: replay.Money{USD: usd, Unknown: usd == 0}}
	}
	cfg := config.Default()
	cfg.Condenser = catalogue.Default(catalogue.TypeLLM)
	cfg.Models["cheap"] = model.Info{Price: model.Price{Input: 0.125, CachedInput: 0.1, Output: 1}}
	long := replay.Report{
		Run: "long\x1b[2J one", Steps: 120, Messages: 242, Condensations: 1, CondensedAt: 98_000, TooLong: 2, Failed: map[string]int{"uncut": 1},
		Estimated: 21_500, Recorded: 12_900_000, Counted: 12_345_678, Named: 200, Missing: 7,
		Without: bill("gpt-4o", 120, 12_345_678, 12_000_000, 9_000, 15.954195),
		With:    bill("gpt-4o", 120, 1_000_000, 900_000, 9_000, 1.465),
		Own:     bill("cheap", 1, 9_500, 0, 499, 0.0016865),
		Records: []replay.Condensation{{
			Step: 80, Reason: "tokens", Events: 50, TokensBefore: 98_000, TokensAfter: 23_999, Replacement: "summary",
			Record: "CURRENT_STATE: all fine\n\x1b[31mred",
		}},
	}
	short := replay.Report{
		Run: "short", Steps: 3, Messages: 6, Failed: map[string]int{},
		Without: bill("gpt-4o", 3, 999, 0, 10, 0.0025975), With: bill("gpt-4o", 3, 999, 0, 10, 0.0125975),
	}
	other := replay.Report{
		Run: "other", Steps: 9, Messages: 20, Failed: map[string]int{}, Short: true,
		Without: bill("my-model", 9, 40_000, 0, 10, 0), With: bill("my-model", 9, 40_000, 0, 10, 0),
	}
	same := func(r replay.Report) replay.Report {
		r.With, r.Own, r.Records, r.Condensations, r.CondensedAt, r.Missing, r.Failed = r.Without, replay.Bill{}, nil, 0, 0, 0, map[string]int{}
		return r
	}
	return replay.Results{
		Settings: []replay.Setting{{Name: "summaries.yaml", Config: cfg}, {Name: "noop.yaml", Config: cfg}},
		Runs:     [][]replay.Report{{long, same(long)}, {short, same(short)}, {other, other}},
		Skipped:  []replay.Skipped{{Name: "package.json", Reason: "it has no messages"}},
	}
}

// table writes the table for a terminal with 100 columns.
func table(r *replay.Results) func(io.Writer) error {
	return func(w io.Writer) error { return r.WriteTable(w, 100) }
}

// written returns what one of the Write methods writes.
func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out strings.Builder
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTable(t *testing.T) {
	r := results()
	want := `
3 sessions, 2 of them long enough to condense

                     bill   saved   condensations   first at   missing   cost more
without Dewpoint   $15.96
summaries.yaml      $1.48   90.7%               1      98.0k      3.5%           1
noop.yaml          $15.96    0.0%               0          -      0.0%           0

1 session of models without a price, in tokens of input:

                   tokens   saved   condensations   first at   missing   cost more
without Dewpoint    40.0k
summaries.yaml      40.0k    0.0%               0          -         -           0
noop.yaml           40.0k    0.0%               0          -         -           0

first at   tokens of the request at which a session was condensed first (the median)
missing    of what later steps named from earlier messages, what they could no longer see
cost more  sessions that would have cost more with Dewpoint than without; --losers lists them

Estimated: tokens are counted with the vocabulary closest to the model's own, and the provider's
prompt cache is assumed to be cold when a session begins and never to expire in it.
The logs of 1 session lack the system prompt or the tools. Their size is taken from the first
recorded request, less its messages: 21.5k tokens (median).
The logs record 12.9M tokens of input where 12.3M are counted here.
Bills include Dewpoint's own calls (summaries.yaml: 1 call, 9,999 tokens). Here a stand-in answers
them, which quotes lines of its prompt; a model's summaries read better, and differ in length.
2 of 132 requests were larger than the model's context window. A provider refuses them without
Dewpoint; here they count as answered.
summaries.yaml: in 1 request a condensation was due and was not made, or has no summary.
docs/headers.md explains the cause, "uncut".

USD per million tokens    input   cached   written   output            price of
cheap                    $0.125    $0.10    $0.125    $1.00   the configuration
gpt-4o                    $2.50    $1.25     $2.50   $10.00          2026-10-28

There is no price for my-model. Give it in a file for --config, such as:
  models: {"my-model": {price: {input: 2.0, cached_input: 0.5, output: 8.0}}}
`
	if got := written(t, table(&r)); got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

// TestTableWithoutPrices: if the price of a model is unknown, no cost is shown.
func TestTableWithoutPrices(t *testing.T) {
	r := results()
	r.Runs = r.Runs[2:]
	if got := written(t, table(&r)); strings.Contains(got, "$") || !strings.Contains(got, "\nwithout Dewpoint    40.0k\n") || strings.Contains(got, "of models without a price") {
		t.Errorf("got\n%s", got)
	}
	got := written(t, r.WriteJSON)
	for _, says := range []string{`"usd": null`, `"saved_usd": null`, `"saved_percent": null`, `"my-model": null`} {
		if !strings.Contains(got, says) {
			t.Errorf("%q is not in\n%s", says, got)
		}
	}
	if got := written(t, r.WriteCSV); !strings.Contains(got, "\nsummaries.yaml,other,my-model,9,20,true,,,,40000,0,40000,0,10,0,0,0,0,0,0,0\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestLosersAreListed(t *testing.T) {
	r := results()
	want := `
summaries.yaml: 1 session would have cost more.

without      with     more   steps   condensations   session
$0.0026   $0.0126   385.0%       3               0   short

noop.yaml: no session would have cost more.

`
	if got := written(t, r.WriteLosers); got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func TestCSVHasALineForEachRunAndConfiguration(t *testing.T) {
	r := results()
	lines := strings.Split(written(t, r.WriteCSV), "\n")
	if want := "summaries.yaml,short,gpt-4o,3,6,false,0.0025975,0.0125975,-0.01,999,0,999,0,10,0,0,0,0,0,0,0"; len(lines) != 8 || lines[2] != want {
		t.Errorf("%d lines\ngot  %s\nwant %s", len(lines), lines[2], want)
	}
}

func TestRecords(t *testing.T) {
	r := results()
	want := "summaries.yaml, long[2J one, step 80, condensed by tokens: 50 events hidden, 98,000 to 23,999 tokens, replaced by: summary\n" +
		"  | CURRENT_STATE: all fine\n  | [31mred\n\n"
	if got := written(t, r.WriteRecords); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestJSONIsDocumented: the results have the keys of the example in docs/replay-json.md, and no others.
func TestJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/replay-json.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(string(doc))
	if example == nil {
		t.Fatal("docs/replay-json.md has no example of the JSON")
	}
	r := results()
	var out strings.Builder
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	got, want := keys(t, out.String()), keys(t, example[1])
	if !slices.Equal(got, want) {
		t.Errorf("the results have the keys\n%s\nand docs/replay-json.md\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var values struct {
		Configs []struct {
			CostMore int `json:"cost_more"`
			Runs     []struct {
				Without struct{ USD float64 }
				Saved   float64 `json:"saved_usd"`
			}
			Total struct{ Steps int }
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &values); err != nil {
		t.Fatal(err)
	}
	c := values.Configs[0]
	if v := c.Runs; len(v) != 3 || v[0].Without.USD != 15.954195 || v[0].Saved != 14.4875085 || v[1].Saved != -0.01 || c.CostMore != 1 || c.Total.Steps != 132 {
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
