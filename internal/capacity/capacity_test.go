package capacity_test

import (
	"math"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/capacity"
)

// TestRedis: the estimate is within a tenth of what chats of ten messages took, and its parts add up.
func TestRedis(t *testing.T) {
	const measured, keys = 872, 2.6 // bytes and keys a message
	load := capacity.Load{Sessions: 200, Messages: 10, Bytes: 120, Days: 1, Content: true}
	e := capacity.Redis(load)
	bytes, count := 0.0, 0.0
	for _, p := range e.Parts {
		if p.Name == capacity.Names {
			p.Bytes, p.Keys = p.Bytes/capacity.NameDays, 0
			e.Bytes, e.Keys = e.Bytes-p.Bytes*(capacity.NameDays-1), e.Keys-capacity.NameDays*16
		}
		bytes, count = bytes+p.Bytes, count+p.Keys
	}
	if math.Abs(bytes/2000/measured-1) > 0.1 || math.Abs(count/2000/keys-1) > 0.1 {
		t.Errorf("%.0f bytes and %.2f keys a message, measured %d and %.2f", bytes/2000, count/2000, measured, keys)
	}
	if math.Abs(e.Keys-count) > 1e-6 {
		t.Errorf("%.0f keys in all, %.0f in parts", e.Keys, count)
	}
	without := load
	without.Content = false
	if capacity.Redis(without).Bytes >= capacity.Redis(load).Bytes {
		t.Error("content takes no memory")
	}
}
