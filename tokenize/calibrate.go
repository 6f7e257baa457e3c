package tokenize

import (
	"cmp"
	"math"
	"strings"
	"sync"
)

const (
	// maxSources and maxSourceBytes bound the memory of a Calibration: clients choose model names.
	maxSources     = 4096
	maxSourceBytes = 256
	// minObserved is the smallest count to learn from. A shorter request is mostly framing.
	minObserved = 200
	// observationWeight is the share of each new observation in the average.
	observationWeight = 0.2

	minRatio, maxRatio = 0.5, 2.0
	minEstimatedRatio  = 0.02 // for counts with images or files: a page may cost far less than its size suggests
)

// Calibration learns, for each source (a client's requests for a model at an upstream), the ratio of upstream's token count to ours, and
// corrects our counts by it. The ratio is an exponentially weighted average of actual/counted, limited to [0.5, 2]. For counts that include
// estimates it is the newest actual/counted instead, limited to [0.02, 2]. A Calibration has up to 4096 sources; a further one replaces an
// arbitrary other. The zero value is ready to use and must not be copied. It is safe for concurrent use.
type Calibration struct {
	mu     sync.RWMutex
	ratios map[string]float64
}

// Observe records that upstream counted actual prompt tokens for a prompt for which we counted counted. It ignores counts below 200, and
// actual counts below half of ours, since upstream cannot have counted the same prompt. A first observation above our count takes full effect
// at once, since overestimating is safe. If estimated is true, counted includes estimates for images or files, and any actual count takes
// full effect at once.
func (c *Calibration) Observe(source string, counted, actual int, estimated bool) {
	if counted < minObserved || actual <= 0 || len(source) > maxSourceBytes {
		return
	}
	seen := min(float64(actual)/float64(counted), maxRatio)
	if seen < minRatio && !estimated {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ratio, known := c.ratios[source]
	switch {
	case estimated:
		seen = max(seen, minEstimatedRatio)
	case known:
		seen = ratio + observationWeight*(seen-ratio)
	case seen < 1:
		seen = 1 + observationWeight*(seen-1)
	}
	if !known {
		c.makeRoom()
		source = strings.Clone(source) // do not retain a request body
	}
	c.ratios[source] = seen
}

// makeRoom drops an arbitrary source if there is no room for another.
func (c *Calibration) makeRoom() {
	if c.ratios == nil {
		c.ratios = map[string]float64{}
	}
	for source := range c.ratios {
		if len(c.ratios) < maxSources {
			return
		}
		delete(c.ratios, source)
	}
}

// Ratio returns the ratio of upstream's count to ours for a source, or 1 if nothing was observed.
func (c *Calibration) Ratio(source string) float64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return cmp.Or(c.ratios[source], 1)
}

// Adjust estimates upstream's count for our count, rounded up. It is positive if counted is positive, and 0 otherwise.
func (c *Calibration) Adjust(source string, counted int) int {
	return int(math.Ceil(float64(max(counted, 0)) * c.Ratio(source)))
}
