package tokenize

import (
	"math"
	"strings"
	"sync"
)

const (
	// calibratedSources and sourceBytes bound what clients can make a Calibration hold: they choose model names.
	calibratedSources = 4096
	sourceBytes       = 256
	// A request of fewer tokens is mostly framing, and says little of the text.
	calibrationFloor = 200
	// The share of each new observation in the average.
	calibrationWeight = 0.2

	lowestRatio, highestRatio = 0.5, 2.0
	lowestEstimated           = 0.02 // of counts with images or files: a page may cost far less than its bytes tell
)

// Calibration learns, for each source of counts (a client's requests for a model at an upstream), how upstream's count relates to
// ours, and corrects ours by it: an exponentially weighted average of actual/counted, kept within [0.5, 2]. Where our counts are
// partly estimates it is the newest actual/counted instead, within [0.02, 2]. It holds the ratios of 4096 sources; for a further one
// it forgets another. The zero value is ready; it must not be copied. Safe for concurrent use.
type Calibration struct {
	mu     sync.RWMutex
	ratios map[string]float64
}

// Observe notes that upstream counted actual prompt tokens where we counted counted. Ignored are counts below 200, and those of which
// upstream counted less than half: it did not count the same prompt. The first observation is believed at once where upstream counts
// more than we do, since that is the safe side. If counted includes estimates, as of images and files, any actual count is believed,
// and at once.
func (c *Calibration) Observe(source string, counted, actual int, estimated bool) {
	if counted < calibrationFloor || actual <= 0 || len(source) > sourceBytes {
		return
	}
	seen := min(float64(actual)/float64(counted), highestRatio)
	if seen < lowestRatio && !estimated {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ratio, known := c.ratios[source]
	switch {
	case estimated:
		seen = max(seen, lowestEstimated)
	case known:
		seen = ratio + calibrationWeight*(seen-ratio)
	case seen < 1:
		seen = 1 + calibrationWeight*(seen-1)
	}
	if !known {
		c.makeRoom()
		source = strings.Clone(source) // it may be part of a request body
	}
	c.ratios[source] = seen
}

// makeRoom forgets a source if there are too many.
func (c *Calibration) makeRoom() {
	if c.ratios == nil {
		c.ratios = map[string]float64{}
	}
	for source := range c.ratios {
		if len(c.ratios) < calibratedSources {
			return
		}
		delete(c.ratios, source)
	}
}

// Ratio is upstream's count over ours for a source, 1 where nothing was observed.
func (c *Calibration) Ratio(source string) float64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if ratio, known := c.ratios[source]; known {
		return ratio
	}
	return 1
}

// Adjust is what upstream would count where we counted counted, rounded up; it is positive where counted is.
func (c *Calibration) Adjust(source string, counted int) int {
	if counted <= 0 {
		return 0
	}
	ratio := c.Ratio(source)
	if ratio == 1 {
		return counted
	}
	return int(math.Ceil(float64(counted) * ratio))
}
