package engine

import (
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// memory is what an engine remembers about threads and sessions; what upstreams have shown is in lessons. It is bounded, since clients begin
// threads. Anything forgotten is learnt again.
type memory struct {
	verbatim lru.Cache[session.ThreadID, int] // position of the last answer to a request forwarded unchanged
	stripTo  lru.Cache[session.ThreadID, int] // last position whose sealed reasoning is bound to a history no longer shown

	answers lru.Cache[session.Hash, []byte] // that upstream keeps and the log does not have
	items   lru.Cache[session.Hash, []byte] // of answers, which upstream keeps

	usages   lru.Cache[session.ThreadID, usage]
	doubted  lru.Cache[lessons.Source, struct{}]                 // sources for which a Misreport was returned
	cramped  lru.Cache[lessons.Source, struct{}]                 // sources for which a Cramped was returned
	begun    lru.Cache[session.SessionID, *atomic.Bool]          // sessions that began here, and whether a holdout has counted them
	created  lru.Cache[session.SessionID, time.Time]             // when the sessions of holdouts began
	supposed lru.Cache[session.ThreadID, []session.Condensation] // that threads of observing tenants would have
}

// boundOf returns which of a thread's answers are bound to a history that is no longer shown.
func (m *memory) boundOf(thread session.ThreadID) (b bound) {
	b.verbatim, _ = m.verbatim.Get(thread)
	b.stripTo, _ = m.stripTo.Get(thread)
	return b
}

// Sizes of caches, in entries.
const (
	threadsKept = 4096
	usagesKept  = 1 << 14
)

func newMemory() *memory {
	return &memory{
		verbatim: lru.New[session.ThreadID, int](threadsKept),
		stripTo:  lru.New[session.ThreadID, int](threadsKept),
		answers:  lru.New[session.Hash, []byte](answersKept),
		items:    lru.New[session.Hash, []byte](itemsKept),
		usages:   lru.New[session.ThreadID, usage](usagesKept),
		doubted:  lru.New[lessons.Source, struct{}](threadsKept),
		cramped:  lru.New[lessons.Source, struct{}](threadsKept),
		begun:    lru.New[session.SessionID, *atomic.Bool](usagesKept),
		created:  lru.New[session.SessionID, time.Time](usagesKept),
		supposed: lru.New[session.ThreadID, []session.Condensation](threadsKept),
	}
}
