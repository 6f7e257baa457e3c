package tokenize

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestCalibrationLearns(t *testing.T) {
	var c Calibration
	if c.Ratio("m") != 1 || c.Adjust("m", 1000) != 1000 {
		t.Errorf("before: ratio %v, 1000 is %d", c.Ratio("m"), c.Adjust("m", 1000))
	}
	c.Observe("m", 1000, 1200)
	if c.Ratio("m") != 1.2 || c.Adjust("m", 1000) != 1200 {
		t.Errorf("after one: ratio %v, 1000 is %d", c.Ratio("m"), c.Adjust("m", 1000))
	}
	c.Observe("m", 1000, 1000)
	if got := c.Ratio("m"); math.Abs(got-1.16) > 1e-9 {
		t.Errorf("after two: ratio %v", got)
	}
	for range 50 {
		c.Observe("m", 1000, 900)
	}
	if got := c.Ratio("m"); math.Abs(got-0.9) > 1e-3 {
		t.Errorf("after many: ratio %v", got)
	}
	if c.Ratio("other") != 1 {
		t.Error("one model's observations changed another")
	}
}

// TestCalibrationBelievesLessSlowly: a first count that is low may be a mistake of upstream's, and a lower count is the dangerous side.
func TestCalibrationBelievesLessSlowly(t *testing.T) {
	var c Calibration
	c.Observe("m", 1000, 600)
	if got := c.Ratio("m"); math.Abs(got-0.92) > 1e-9 {
		t.Errorf("after one: ratio %v", got)
	}
	for range 50 {
		c.Observe("m", 1000, 600)
	}
	if got := c.Ratio("m"); math.Abs(got-0.6) > 1e-3 {
		t.Errorf("after many: ratio %v", got)
	}
}

func TestCalibrationIgnores(t *testing.T) {
	var c Calibration
	c.Observe("m", 199, 400)
	c.Observe("m", 0, 400)
	c.Observe("m", -1000, -1200)
	c.Observe("m", 1000, 0)
	c.Observe("m", 1000, -5)
	c.Observe("m", 1000, 499) // truncated, or without the cached part
	c.Observe(strings.Repeat("m", 257), 1000, 1200)
	if c.Ratio("m") != 1 || c.Ratio(strings.Repeat("m", 257)) != 1 {
		t.Errorf("learnt %v", c.ratios)
	}
	c.Observe("m", 200, 400)
	if got := c.Ratio("m"); got != 2 {
		t.Errorf("ratio %v from a count at the floor", got)
	}
}

// TestCalibrationIsBounded: the newest source is always learnt.
func TestCalibrationIsBounded(t *testing.T) {
	var c Calibration
	for i := range 2 * calibratedSources {
		c.Observe(fmt.Sprint(i), 1000, 1500)
		if c.Ratio(fmt.Sprint(i)) != 1.5 {
			t.Fatalf("source %d is not learnt", i)
		}
	}
	if n := len(c.ratios); n != calibratedSources {
		t.Errorf("%d sources", n)
	}
}

func TestCalibrationStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Calibration
		for range rapid.IntRange(0, 20).Draw(t, "observations") {
			c.Observe("m", rapid.Int().Draw(t, "counted"), rapid.Int().Draw(t, "actual"))
		}
		if r := c.Ratio("m"); !(r >= 0.5 && r <= 2) {
			t.Fatalf("ratio %v", r)
		}
		counted := rapid.IntRange(-10, 1<<40).Draw(t, "adjusted")
		adjusted := c.Adjust("m", counted)
		if counted > 0 && (adjusted < counted/2 || adjusted > 2*counted || adjusted == 0) || counted <= 0 && adjusted != 0 {
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
				c.Observe(fmt.Sprint(i%3), 1000, 1100)
				if got := c.Adjust(fmt.Sprint(i%3), 1000); got != 1100 {
					t.Errorf("adjusted to %d", got)
				}
			}
		})
	}
	wait.Wait()
}
