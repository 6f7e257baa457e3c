package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// enqueueScript adds a notice. KEYS: outbox. ARGV: when the condensation was made in ms, notice, limit, TTL in ms (0 for
// none). It returns whether the notice is in the outbox.
const enqueueScript = `
if redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) == 1 and redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[3]) then
  redis.call('ZREM', KEYS[1], ARGV[2])
  return 0
end
if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return 1
`

// timeDigits is the length of the hexadecimal time with which a notice begins.
const timeDigits = 16

func notice(n session.Notice) string { return fmt.Sprintf("%016x%s", n.Made.UnixNano(), n.Thread) }

func parseNotice(tenant, text string) (session.Notice, error) {
	if len(text) < timeDigits {
		return session.Notice{}, codec.ErrCorrupt
	}
	made, err := strconv.ParseInt(text[:timeDigits], 16, 64)
	if err != nil {
		return session.Notice{}, codec.ErrCorrupt
	}
	return session.Notice{Tenant: tenant, Thread: session.ThreadID(text[timeDigits:]), Made: time.Unix(0, made)}, nil
}

// Enqueue implements session.Store. The notice is as durable as the server's configuration makes writes.
func (s *Store) Enqueue(ctx context.Context, n session.Notice, limit int) (bool, error) {
	args := []any{n.Made.UnixMilli(), notice(n), limit, s.options.TTL.Milliseconds()}
	return runScript(ctx, s, script{enqueueScript, []string{s.keys.outbox(n.Tenant)}, args}, (*redis.Cmd).Bool)
}

func (s *Store) Dequeue(ctx context.Context, n session.Notice) error {
	return s.write(ctx, func(ctx context.Context) error {
		return s.client.ZRem(ctx, s.keys.outbox(n.Tenant), notice(n)).Err()
	})
}

func (s *Store) Enqueued(ctx context.Context, tenant string, from, limit int) (found []session.Notice, total int, err error) {
	var page *redis.StringSliceCmd
	var number *redis.IntCmd
	err = s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		page = pipe.ZRange(ctx, s.keys.outbox(tenant), int64(from), int64(from+limit)-1)
		number = pipe.ZCard(ctx, s.keys.outbox(tenant))
	})
	if err != nil {
		return nil, 0, err
	}
	for _, text := range page.Val() {
		n, err := parseNotice(tenant, text)
		if err != nil {
			return nil, 0, fmt.Errorf("notice: %w", err)
		}
		found = append(found, n)
	}
	return found, int(number.Val()), nil
}
