package retention

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

func measured(t *testing.T) *Result {
	t.Helper()
	r, err := Measure(context.Background(), []replay.Run{long(60), long(40), long(80)}, Strategies(), Options{
		Shares: []float64{0.2, 0.5}, Moments: 5, Minimum: 300, Counter: wordCounter{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMeasure(t *testing.T) {
	r := measured(t)
	for b, share := range r.Shares {
		base := r.total(0, b, r.all())
		if base.Moments < 10 || base.Memory == 0 {
			t.Fatalf("%.0f%%: measured %+v", 100*share, base)
		}
		for s, strategy := range r.Strategies {
			c := r.total(s, b, r.all())
			if c.Moments != base.Moments || c.Used != base.Used || c.Memory != base.Memory {
				t.Errorf("%s is asked about other references: %+v, not %+v", strategy.Name, c, base)
			}
			if c.Context > c.Recalled || c.Recalled > c.Kept || c.Kept > c.Used {
				t.Errorf("%s: %+v", strategy.Name, c)
			}
		}
		if best := r.total(r.index("oracle"), b, r.all()); best.Recalled <= r.total(r.index("random"), b, r.all()).Recalled {
			t.Errorf("%.0f%%: the oracle is no better than chance: %+v", 100*share, best)
		}
	}
}

func TestCondensersMeetTheBudget(t *testing.T) {
	quick.Skip(t)
	r := measured(t)
	for _, name := range []string{"recent_events", "conversation_window", "amortized_forgetting", "llm_attention"} {
		if c := r.total(r.index(name), 1, r.all()); r.Strategies[r.index(name)].Name != name || c.Over > 0 {
			t.Errorf("%s: %d of %d views are over the budget", name, c.Over, c.Moments)
		}
	}
}

func TestMeasureIsDeterministic(t *testing.T) {
	quick.Skip(t)
	var first, second bytes.Buffer
	measured(t).Markdown(&first)
	measured(t).Markdown(&second)
	if first.String() != second.String() {
		t.Errorf("two measurements differ:\n%s\n%s", first.String(), second.String())
	}
	for _, s := range Strategies() {
		if !strings.Contains(first.String(), s.Name) {
			t.Errorf("no row for %s", s.Name)
		}
	}
}

func TestMeasureStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Measure(ctx, []replay.Run{long(60)}, Strategies(), Options{
		Shares: []float64{0.5}, Moments: 5, Minimum: 300, Counter: wordCounter{},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestBootstrap(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	mean := func(drawn []int) float64 {
		sum := 0.0
		for _, i := range drawn {
			sum += values[i]
		}
		return sum / float64(len(drawn))
	}
	got := bootstrap(len(values), mean)
	if again := bootstrap(len(values), mean); !reflect.DeepEqual(got, again) {
		t.Errorf("%v, then %v", got, again)
	}
	// the standard error of this mean is sqrt(8.25/10) = 0.91, so the interval is about 5.5 ± 1.8
	if got.Value != 5.5 || math.Abs(got.Low-3.7) > 0.3 || math.Abs(got.High-7.3) > 0.3 {
		t.Errorf("got %v", got)
	}
	none := bootstrap(3, func([]int) float64 { return math.NaN() })
	if !math.IsNaN(none.Value) || !math.IsNaN(none.Low) || percent(none) != "–" {
		t.Errorf("nothing counted gives %v", none)
	}
}
