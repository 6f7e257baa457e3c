package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// reserveScript implements Reserve. KEYS: accounts. ARGV: id, now in ms, when the hold ends in ms, then for each account
// its limit, amount, room and lifetime in ms. The field s of an account is the amount spent. Each other field is the amount
// held under an id, and until when. The script returns whether an account is full, followed by the amounts spent and held
// of each account.
const reserveScript = `
local own, now = 'h' .. ARGV[1], tonumber(ARGV[2])
local full, held, reply = 0, false, {0}
for i, key in ipairs(KEYS) do
  local fields, spent, room = redis.call('HGETALL', key), 0, 0
  for j = 1, #fields, 2 do
    if fields[j] == 's' then
      spent = tonumber(fields[j + 1])
    else
      local amount, ends = string.match(fields[j + 1], '^(%d+):(%d+)$')
      if tonumber(ends) <= now then redis.call('HDEL', key, fields[j]) else room = room + tonumber(amount) end
      held = held or fields[j] == own
    end
  end
  if spent + room >= tonumber(ARGV[4 * i]) then full = 1 end
  reply[2 * i], reply[2 * i + 1] = spent, room
end
if held then return reply end
reply[1] = full
if full == 1 or ARGV[1] == '' then return reply end
for i, key in ipairs(KEYS) do
  redis.call('HINCRBY', key, 's', ARGV[4 * i + 1])
  redis.call('HSET', key, own, ARGV[4 * i + 2] .. ':' .. ARGV[3])
  redis.call('PEXPIRE', key, ARGV[4 * i + 3])
end
return reply
`

// settleScript implements Settle. KEYS: accounts. ARGV: id, then the amount for each account.
const settleScript = `
for i, key in ipairs(KEYS) do
  if redis.call('HDEL', key, 'h' .. ARGV[1]) == 1 then redis.call('HINCRBY', key, 's', ARGV[i + 1]) end
end
return 1
`

func (s *Store) Reserve(ctx context.Context, id string, charges []session.Charge) (session.Reserved, error) {
	now := time.Now()
	args := []any{id, now.UnixMilli(), now.Add(session.HoldFor).UnixMilli()}
	for _, c := range charges {
		args = append(args, c.Limit, c.Amount, c.Room, max(c.Until.Sub(now), 0).Milliseconds()+session.HoldFor.Milliseconds())
	}
	reply, err := runScript(ctx, s, script{reserveScript, s.accounts(charges), args}, (*redis.Cmd).Int64Slice)
	if err == nil {
		err = checkLen(reply, 1+2*len(charges))
	}
	if err != nil {
		return session.Reserved{}, err
	}
	out := session.Reserved{Full: reply[0] == 1}
	for i := 1; i < len(reply); i += 2 {
		out.Balances = append(out.Balances, session.Balance{Spent: reply[i], Held: reply[i+1]})
	}
	return out, nil
}

func (s *Store) Settle(ctx context.Context, id string, charges []session.Charge) error {
	args := []any{id}
	for _, c := range charges {
		args = append(args, c.Amount)
	}
	return s.execScript(ctx, script{settleScript, s.accounts(charges), args})
}

// accounts returns the keys of the accounts. In a Cluster all accounts of a tenant are in one slot.
func (s *Store) accounts(charges []session.Charge) (names []string) {
	for _, c := range charges {
		names = append(names, s.keys.prefix+"b:{"+tag(c.Tenant)+"}:"+c.Name+":"+strconv.FormatInt(c.Until.Unix(), 10))
	}
	return names
}
