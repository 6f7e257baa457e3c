package proxy

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// cacheLife is the longest that providers are known to keep an idle prefix in their prompt cache by default. Beyond it
// nothing is taken to be cached but what upstream reports.
const cacheLife = time.Hour

// bill is what one forwarded request comes to, compared with what it would have come to as the client sent it. Tokens are
// those of the prompt that upstream charges.
type bill struct {
	before    int            // as the client sent it
	after     int            // as it was forwarded
	known     int            // the part of before that was sent earlier already
	idle      time.Duration  // since the thread was last seen
	condensed bool           // by this request: what upstream had cached does not match any more
	usage     *session.Usage // nil: upstream did not report it
	price     model.Price
}

// saved is what condensing saved of this request, net of the prompt cache that has to be written again: negative where the
// request cost more. It is measured against the cheapest that the request could have been unchanged: all that was sent
// earlier read from a warm cache. So the discount that the provider gives anyway never counts as ours.
func (b bill) saved() (s Saving) {
	if b.before == b.after || b.after <= 0 {
		return s
	}
	s.Tokens = b.before - b.after
	full, sent, gone := float64(b.before), float64(b.after), float64(s.Tokens)
	if !b.price.Known() {
		return s
	}
	would, did := b.caches(min(float64(b.known), full), gone)
	s.NotSent, s.Rewritten = b.price.Saved(model.Prompt{
		NotSent: gone, Rewritten: min(would, full) - min(did, sent) - gone, Caching: would > 0, Long: b.long(),
	})
	return s
}

// long is the share of what was written to the cache that stays there for an hour.
func (b bill) long() float64 {
	if b.usage == nil || b.usage.Written <= 0 {
		return 0
	}
	return float64(b.usage.WrittenLong) / float64(b.usage.Written)
}

// caches is how many tokens would have come from the cache had the request stayed as it was, and how many did.
func (b bill) caches(known, gone float64) (would, did float64) {
	warm := b.idle < cacheLife
	switch {
	case b.usage != nil && b.usage.Cached > 0:
		did = float64(b.usage.Cached)
		if !warm {
			known = 0
		}
		return max(known, did), did
	case b.usage != nil && !b.condensed, !warm:
		return 0, 0 // the cache was cold, or there is none
	case b.condensed:
		return known, 0
	}
	return known, max(known-gone, 0)
}
