package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore/internal/nodes"
)

func (s *Store) Request(ctx context.Context, id session.ThreadID, at time.Time) error {
	entry := s.content.Event(id, session.Event{Kind: session.Requested, Time: at})
	return s.execScript(ctx, script{logScript, s.threadKeys(id), []any{entry, s.options.TTL.Milliseconds(), rand.Text(), 0}})
}

const (
	scanCount = 500 // approximate number of keys that one SCAN looks at
	maxScans  = 100 // SCANs for one page
)

// position says how far the list of sessions was read: the node, the cursor of SCAN on that node, and the last key that was read of those
// that SCAN returns for this cursor. There is no index, so listing sessions scans all keys.
type position struct {
	node   string
	cursor uint64
	after  string
}

func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s\n%d\n%s", p.node, p.cursor, p.after))
}

func parsePosition(text string) (p position, err error) {
	if text == "" {
		return p, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(plain), "\n", 3)
	if err != nil || len(parts) != 3 {
		return p, session.ErrCursor
	}
	p.node, p.after = parts[0], parts[2]
	p.cursor, err = strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return p, session.ErrCursor
	}
	return p, nil
}

// Sessions implements session.Archive. It lists sessions in no particular order. Sessions that exist throughout the listing
// are listed, but some may be listed twice if Redis resizes its tables or a Cluster moves slots in the meantime.
func (s *Store) Sessions(ctx context.Context, q session.SessionQuery) (page session.SessionPage, err error) {
	at, err := parsePosition(q.Cursor)
	if err != nil {
		return page, err
	}
	masters, err := s.masters(ctx)
	if err != nil {
		return page, err
	}
	for range maxScans {
		n := slices.IndexFunc(masters, func(n nodes.Node) bool { return n.Addr >= at.node })
		if n < 0 {
			return page, nil
		}
		if masters[n].Addr != at.node { // the first page, or the node is gone and this is the next
			at = position{node: masters[n].Addr}
		}
		keys, next, err := s.scan(ctx, masters[n].Client, at)
		if err != nil {
			return page, err
		}
		if err := s.fillPage(ctx, &page, q, &at, keys); err != nil || page.Next != "" {
			return page, err
		}
		at = position{node: at.node, cursor: next}
		if next == 0 {
			if n+1 == len(masters) {
				return page, nil
			}
			at = position{node: masters[n+1].Addr}
		}
	}
	page.Next = at.String()
	return page, nil
}

// fillPage adds those of the keys' sessions that match the query. If the page becomes full, it sets the cursor of the next.
func (s *Store) fillPage(ctx context.Context, page *session.SessionPage, q session.SessionQuery, at *position, keys []string) error {
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

func (s *Store) masters(ctx context.Context) (masters []nodes.Node, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		masters, err = nodes.Masters(ctx, s.client)
		return err
	})
	if err == nil && len(masters) == 0 {
		err = fmt.Errorf("%w: the cluster names no master", session.ErrUnavailable)
	}
	return masters, err
}

// scan returns the keys of sessions that SCAN returns for a cursor, sorted, after the given position.
func (s *Store) scan(ctx context.Context, c redis.Cmdable, at position) (keys []string, next uint64, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		keys, next, err = c.Scan(ctx, at.cursor, s.keys.sessions(), scanCount).Result()
		return err
	})
	slices.Sort(keys)
	keys = slices.Compact(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key <= at.after })
	return keys, next, err
}
