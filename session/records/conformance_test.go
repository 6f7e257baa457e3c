package records_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
	"github.com/dewpoint-proxy/dewpoint/session/store"
	"github.com/dewpoint-proxy/dewpoint/session/store/memory"
)

// left is a store that outlives its records, so that they can be opened again.
type left struct{ *memory.Store }

func (left) Close() error { return nil }

// conform runs the suite over stores in memory.
func conform(t *testing.T, o records.Options) {
	o.Content = true
	under := map[session.Backend]*memory.Store{}
	open := func(s *memory.Store, o records.Options) session.Backend {
		b := records.New(s, o)
		under[b] = s
		return b
	}
	sessiontest.Run(t, func(*testing.T) session.Backend { return open(memory.New(), o) }, sessiontest.Hooks{
		Dump: func(_ *testing.T, s session.Backend) map[string]string { return under[s].Dump() },
		Damage: func(_ *testing.T, s session.Backend, id session.ThreadID, seq uint64, change func([]byte) []byte) {
			under[s].Change(store.Key{Kind: 't', Group: string(id), Logs: "ex"}, 'e', seq, change)
		},
		WithoutContent: func(*testing.T) session.Backend { return open(memory.New(), records.Options{}) },
		Replica: func(_ *testing.T, s session.Backend) session.Backend {
			b := records.New(left{under[s]}, o)
			under[b] = under[s]
			return b
		},
		Reopen: func(_ *testing.T, s session.Backend) session.Backend { return open(under[s], o) },
	})
}

func TestConformance(t *testing.T) { conform(t, records.Options{}) }

// TestConformanceSealed keeps content encrypted.
func TestConformanceSealed(t *testing.T) { conform(t, records.Options{Keys: sessiontest.Keys(t, "k")}) }
