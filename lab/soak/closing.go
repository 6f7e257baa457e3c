package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

// The bounds of the closing: of its rounds, and of the requests at once.
const (
	mostRounds     = 4
	closingAtOnce  = 8
	probing        = 100 * time.Millisecond
	lossesMetric   = "dewpoint_store_losses_total"
	auditorTimeout = 20 * time.Second
)

// closing checks everything once nothing goes wrong any more. Each line makes one more request, which repairs what its
// log lacks; only where that one's writes were lost, too (the proxy counts them), it makes yet another.
func (s *soak) closing(ctx context.Context) error {
	s.weather.set(over, true)
	if err := s.recover(ctx); err != nil {
		return err
	}
	lines := s.lines()
	for s.rounds = 1; ; s.rounds++ {
		before := s.losses(ctx)
		s.close(ctx, lines)
		lost := s.losses(ctx) > before
		failed, err := s.audit(ctx, lines)
		if err != nil {
			return err
		}
		if len(failed) == 0 || !lost || s.rounds == mostRounds {
			for l, err := range failed {
				s.tally.violate("every message is in its log, in order", l.name(), "%v", err)
			}
			return s.belong(ctx)
		}
		lines = slices.Collect(maps.Keys(failed))
		if s.redis == nil { // the store was taken from its replica
			if err := s.fleet.launch(ctx, 0); err != nil {
				return err
			}
		}
	}
}

// recover waits until every replica recognises requests again.
func (s *soak) recover(ctx context.Context) error {
	for slot := range s.fleet.size() {
		probe := s.newAgent(s.Sessions + slot)
		probe.caller.only, probe.ending = slot, true
		l := probe.lines[0]
		for end := time.Now().Add(patience); ; {
			if err := probe.turn(ctx, l, true); err != nil {
				return fmt.Errorf("probe replica: %w", err)
			}
			if l.placed[len(l.placed)-1].thread != "" {
				break
			}
			if time.Now().After(end) {
				s.tally.violate("a replica recovers when the store is back", l.name(), "not within %v", patience)
				return nil
			}
			if !sleep(ctx, probing) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// lines is all that were ever answered.
func (s *soak) lines() []*line {
	var all []*line
	for _, a := range s.agents {
		for _, l := range a.family.lines {
			if l.last != nil {
				all = append(all, l)
				s.tally.count(groupLines, l.kind)
			}
		}
	}
	return all
}

// losses is how many writes and lookups were lost so far, by the replicas' own count.
func (s *soak) losses(ctx context.Context) int {
	s.fleet.sample(ctx)
	return s.fleet.total(lossesMetric)
}

// close has each line make one more request. Lines of one family take turns, as its agent is one.
func (s *soak) close(ctx context.Context, lines []*line) {
	byFamily := map[*family][]*line{}
	for _, l := range lines {
		byFamily[l.family] = append(byFamily[l.family], l)
	}
	var working errgroup.Group
	working.SetLimit(closingAtOnce)
	for _, a := range s.agents {
		working.Go(func() error {
			a.ending = true
			for _, l := range byFamily[a.family] {
				if err := a.turn(ctx, l, true); err != nil {
					return nil //nolint:nilerr // it is reported
				}
				s.tally.count(groupChecked, "closing requests")
			}
			return nil
		})
	}
	_ = working.Wait()
}

// audit compares each line with the store, and gives those that differ.
func (s *soak) audit(ctx context.Context, lines []*line) (map[*line]error, error) {
	store, err := s.openStore()
	if err != nil {
		return nil, err
	}
	a := newAuditor(store, s.tally)
	failed := map[*line]error{}
	for _, l := range lines {
		if err := a.line(ctx, l); err != nil {
			failed[l] = err
		}
	}
	return failed, errors.Join(ctx.Err(), store.Close())
}

// belong checks what belongs where: by the answers' headers, and by what the store has of each session.
func (s *soak) belong(ctx context.Context) error {
	b := &belonging{tally: s.tally, weather: s.weather, owners: map[string]*family{}}
	for _, a := range s.agents {
		b.family(a.family)
	}
	store, err := s.openStore()
	if err != nil {
		return err
	}
	if err := newAuditor(store, s.tally).sessions(ctx, b.owners); err != nil {
		s.tally.violate("a session holds its own conversation alone", "store", "%v", err)
	}
	return store.Close()
}

// openStore opens the store next to the replicas, or, where it is a file, after the one that has it.
func (s *soak) openStore() (session.Store, error) {
	if s.redis != nil {
		return records.New(redisstore.Open(redisstore.Options{Addrs: []string{s.redis.Addr}, Timeout: auditorTimeout}), records.Options{Content: true}), nil
	}
	if err := s.fleet.end(0); err != nil { // it may have ended before
		return nil, err
	}
	return boltstore.Open(boltstore.Options{Path: s.path, Content: true})
}
