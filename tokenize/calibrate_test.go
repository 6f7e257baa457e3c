package tokenize

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func TestCalibrationLearns(t *testing.T) {
	var c Calibration
	if c.Ratio("m") != 1 || c.Adjust("m", 1000) != 1000 {
		t.Errorf("before: ratio %v, 1000 is %d", c.Ratio("m"), c.Adjust("m", 1000))
	}
	c.Observe("m", 1000, 1200, false)
	if c.Ratio("m") != 1.2 || c.Adjust("m", 1000) != 1200 {
		t.Errorf("after one: ratio %v, 1000 is %d", c.Ratio("m"), c.Adjust("m", 1000))
	}
	c.Observe("m", 1000, 1000, false)
	if got := c.Ratio("m"); math.Abs(got-1.16) > 1e-9 {
		t.Errorf("after two: ratio %v", got)
	}
	for range 50 {
		c.Observe("m", 1000, 900, false)
	}
	if got := c.Ratio("m"); math.Abs(got-0.9) > 1e-3 {
		t.Errorf("after many: ratio %v", got)
	}
	if c.Ratio("other") != 1 {
		t.Error("one model's observations changed another")
	}
}

// TestLowFirstObservationTakesEffectGradually: a first observation below our count takes effect only gradually, since it may be upstream's mistake, and
// underestimating is dangerous.
func TestLowFirstObservationTakesEffectGradually(t *testing.T) {
	var c Calibration
	c.Observe("m", 1000, 600, false)
	if got := c.Ratio("m"); math.Abs(got-0.92) > 1e-9 {
		t.Errorf("after one: ratio %v", got)
	}
	for range 50 {
		c.Observe("m", 1000, 600, false)
	}
	if got := c.Ratio("m"); math.Abs(got-0.6) > 1e-3 {
		t.Errorf("after many: ratio %v", got)
	}
}

// TestCalibrationOfEstimates: the cost of images and files takes full effect at once, however low it is.
func TestCalibrationOfEstimates(t *testing.T) {
	var c Calibration
	for _, o := range []struct {
		actual int
		want   float64
	}{{8_000, 0.08}, {60_000, 0.6}, {30, 0.02}, {0, 0.02}, {-1, 0.02}, {150_000, 1.5}, {900_000, 2}} {
		if c.Observe("m", 100_000, o.actual, true); math.Abs(c.Ratio("m")-o.want) > 1e-9 {
			t.Errorf("after %d: ratio %v, want %v", o.actual, c.Ratio("m"), o.want)
		}
	}
}

func TestCalibrationIgnores(t *testing.T) {
	var c Calibration
	c.Observe("m", 199, 400, false)
	c.Observe("m", 0, 400, false)
	c.Observe("m", -1000, -1200, false)
	c.Observe("m", 1000, 0, false)
	c.Observe("m", 1000, -5, false)
	c.Observe("m", 1000, 499, false) // truncated, or without the cached part
	c.Observe(strings.Repeat("m", 257), 1000, 1200, false)
	if c.Ratio("m") != 1 || c.Ratio(strings.Repeat("m", 257)) != 1 {
		t.Errorf("learnt %v", c.ratios)
	}
	c.Observe("half", 1000, 500, false)
	if got := c.Ratio("half"); math.Abs(got-0.9) > 1e-9 {
		t.Errorf("ratio %v from half of the count", got)
	}
	c.Observe("m", 200, 400, false)
	if got := c.Ratio("m"); got != 2 {
		t.Errorf("ratio %v from a count at the floor", got)
	}
}

// TestCalibrationIsBounded: the number of sources is bounded, and the newest source is always among them.
func TestCalibrationIsBounded(t *testing.T) {
	var c Calibration
	for i := range 2 * maxSources {
		c.Observe(fmt.Sprint(i), 1000, 1500, false)
		if c.Ratio(fmt.Sprint(i)) != 1.5 {
			t.Fatalf("source %d is not learnt", i)
		}
	}
	if n := len(c.ratios); n != maxSources {
		t.Errorf("%d sources", n)
	}
}

func TestCalibrationStaysInRange(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var c Calibration
		estimated, least := rapid.Bool().Draw(t, "estimated"), 0.5
		if estimated {
			least = 0.02
		}
		for range rapid.IntRange(0, 20).Draw(t, "observations") {
			c.Observe("m", rapid.Int().Draw(t, "counted"), rapid.Int().Draw(t, "actual"), estimated)
		}
		if r := c.Ratio("m"); !(r >= least && r <= 2) {
			t.Fatalf("ratio %v", r)
		}
		counted := rapid.IntRange(-10, 1<<40).Draw(t, "adjusted")
		adjusted := c.Adjust("m", counted)
		if counted > 0 && (float64(adjusted) < float64(counted)*least || adjusted > 2*counted || adjusted == 0) || counted <= 0 && adjusted != 0 {
			t.Fatalf("%d is adjusted to %d", counted, adjusted)
		}
	})
}

func TestCalibrationIsConcurrent(t *testing.T) {
	var c Calibration
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 100 {
				c.Observe(fmt.Sprint(i%3), 1000, 1100, false)
				if got := c.Adjust(fmt.Sprint(i%3), 1000); got != 1100 {
					t.Errorf("adjusted to %d", got)
				}
			}
		})
	}
	wait.Wait()
}
