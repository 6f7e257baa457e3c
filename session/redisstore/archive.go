package redisstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s *Store) Request(ctx context.Context, id session.ThreadID, at time.Time) error {
	entry := s.content.Event(id, session.Event{Kind: session.Requested, Time: at})
	return s.done(ctx, script{noteScript, s.written(id), []any{entry, s.options.TTL.Milliseconds(), token(), 0}})
}

const (
	scanCount = 500 // keys looked at by one SCAN, about
	scans     = 100 // SCANs for one page at most
)

// spot is how far the list of sessions was read: on which node, at which of its SCAN cursors, and after which of the keys
// that this cursor gives. No index is kept, so listing costs what looking at all keys does.
type spot struct {
	node   string
	cursor uint64
	after  string
}

func (p spot) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s\n%d\n%s", p.node, p.cursor, p.after))
}

func parseSpot(text string) (p spot, err error) {
	if text == "" {
		return p, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(plain), "\n", 3)
	if err != nil || len(parts) != 3 {
		return p, session.ErrCursor
	}
	p.node, p.after = parts[0], parts[2]
	if p.cursor, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return p, session.ErrCursor
	}
	return p, nil
}

// Sessions implements session.Archive, in no order. A session that is written to while the list is read is listed, but
// may be listed twice while Redis changes the size of its tables or a Cluster moves slots.
func (s *Store) Sessions(ctx context.Context, q session.SessionQuery) (page session.SessionPage, err error) {
	at, err := parseSpot(q.Cursor)
	if err != nil {
		return page, err
	}
	nodes, err := s.masters(ctx)
	if err != nil {
		return page, err
	}
	for range scans {
		n := slices.IndexFunc(nodes, func(n node) bool { return n.addr >= at.node })
		if n < 0 {
			return page, nil
		}
		if nodes[n].addr != at.node { // the first of all, or the next after one that is gone
			at = spot{node: nodes[n].addr}
		}
		keys, next, err := s.scan(ctx, nodes[n].client, at)
		if err != nil {
			return page, err
		}
		if err := s.fill(ctx, &page, q, &at, keys); err != nil || page.Next != "" {
			return page, err
		}
		at = spot{node: at.node, cursor: next}
		if next == 0 {
			if n+1 == len(nodes) {
				return page, nil
			}
			at = spot{node: nodes[n+1].addr}
		}
	}
	page.Next = at.String()
	return page, nil
}

// fill adds those of keys' sessions that are asked for. If the page is full before, it says where the next one begins.
func (s *Store) fill(ctx context.Context, page *session.SessionPage, q session.SessionQuery, at *spot, keys []string) error {
	all, err := s.sessions(ctx, keys)
	if err != nil {
		return err
	}
	for i, ses := range all {
		if len(page.Sessions) == q.Limit {
			page.Next = at.String()
			return nil
		}
		if len(ses.Threads) > 0 && q.Matches(ses) {
			page.Sessions = append(page.Sessions, ses)
		}
		at.after = keys[i]
	}
	return nil
}

// node is a server that has keys of its own. A single server has no address here: it may be another one after a failover.
type node struct {
	addr   string
	client redis.Cmdable
}

func (s *Store) masters(ctx context.Context) ([]node, error) {
	cluster, is := s.client.(*redis.ClusterClient)
	if !is {
		return []node{{client: s.client}}, nil
	}
	var mu sync.Mutex
	var nodes []node
	err := s.read(ctx, func(ctx context.Context) error {
		return cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, node{c.Options().Addr, c})
			return nil
		})
	})
	if err == nil && len(nodes) == 0 {
		err = fmt.Errorf("%w: the cluster names no master", session.ErrUnavailable)
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.addr, b.addr) })
	return nodes, err
}

// scan gives the keys of sessions that one cursor gives, from the spot on, in order.
func (s *Store) scan(ctx context.Context, c redis.Cmdable, at spot) (keys []string, next uint64, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		keys, next, err = c.Scan(ctx, at.cursor, s.keys.sessions(), scanCount).Result()
		return err
	})
	slices.Sort(keys)
	keys = slices.Compact(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key <= at.after })
	return keys, next, err
}
