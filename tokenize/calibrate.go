package tokenize

import (
	"maps"
	"math"
	"strings"
	"sync"
)

const (
	// calibratedModels and modelNameBytes bound what clients can make a Calibration hold: they choose model names.
	calibratedModels = 256
	modelNameBytes   = 256
	// A request of fewer tokens is mostly framing, and says little of the text.
	calibrationFloor = 200
	// The share of each new observation in the average.
	calibrationWeight = 0.2

	lowestRatio, highestRatio = 0.5, 2.0
)

// Calibration learns, for each model, how upstream's count relates to ours, and corrects ours by it: an exponentially
// weighted average of actual/counted, kept within [0.5, 2]. The first 256 models are learnt; further ones stay
// uncorrected. The zero value is ready; it must not be copied. Safe for concurrent use.
type Calibration struct {
	mu     sync.RWMutex
	ratios map[string]float64
}

// Observe notes that upstream counted actual prompt tokens (usage.prompt_tokens) where we counted counted. Counts below
// 200 are ignored.
func (c *Calibration) Observe(model string, counted, actual int) {
	if counted < calibrationFloor || actual <= 0 || len(model) > modelNameBytes {
		return
	}
	seen := clamp(float64(actual) / float64(counted))
	c.mu.Lock()
	defer c.mu.Unlock()
	ratio, known := c.ratios[model]
	switch {
	case known:
		c.ratios[model] = clamp(ratio + calibrationWeight*(seen-ratio))
	case len(c.ratios) < calibratedModels: // the name may be part of a request body: keep a copy
		if c.ratios == nil {
			c.ratios = map[string]float64{}
		}
		c.ratios[strings.Clone(model)] = seen
	}
}

// Ratio is upstream's count over ours for a model, 1 where nothing was observed.
func (c *Calibration) Ratio(model string) float64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if ratio, known := c.ratios[model]; known {
		return ratio
	}
	return 1
}

// Adjust is what upstream would count where we counted counted, rounded up; it is positive where counted is.
func (c *Calibration) Adjust(model string, counted int) int {
	if counted <= 0 {
		return 0
	}
	ratio := c.Ratio(model)
	if ratio == 1 {
		return counted
	}
	return int(math.Ceil(float64(counted) * ratio))
}

// Snapshot is a copy of all ratios by model.
func (c *Calibration) Snapshot() map[string]float64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	snapshot := make(map[string]float64, len(c.ratios))
	maps.Copy(snapshot, c.ratios)
	return snapshot
}

func clamp(ratio float64) float64 { return min(max(ratio, lowestRatio), highestRatio) }
