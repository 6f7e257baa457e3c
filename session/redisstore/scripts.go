package redisstore

// appendScript appends a batch to a thread's record and log.
//
// KEYS: record, log. ARGV: at, whether that may begin a thread, record, length, condensations, threads it shares the logs
// of, TTL in ms (0 none), events... It returns the field k, or nil if the batch is stale.
//
// A log that was evicted alone does no harm: the entries that are left are always the newest.
const appendScript = `
local len = redis.call('HGET', KEYS[1], 'l')
if not len then
  if ARGV[2] ~= '1' then return false end
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'k', ARGV[6])
elseif len ~= ARGV[1] then
  return false
end
for i = 8, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
redis.call('HINCRBY', KEYS[1], 'n', #ARGV - 7)
redis.call('HSET', KEYS[1], 'r', ARGV[3], 'l', ARGV[4])
if ARGV[7] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
end
return redis.call('HGET', KEYS[1], 'k')
`

// condenseScript logs a condensation. KEYS: record, log. ARGV: condensation, summary, event, TTL in ms (0 none). It
// returns the Seq, or nil if there is no such thread.
const condenseScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return false end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
local name = string.format('%.0f', seq)
local list = redis.call('HGET', KEYS[1], 'c') or ''
redis.call('HSET', KEYS[1], 'c', list .. name .. ':' .. #ARGV[1] .. ':' .. ARGV[1], 's' .. name, ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[3])
if ARGV[4] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return seq
`

// eventsScript reads a page of the log. KEYS: record, log. ARGV: first entry, how many. It returns the Seq of the first
// entry it gives and then the entries, or nil if there is no such thread.
const eventsScript = `
local n = redis.call('HGET', KEYS[1], 'n')
if not n then return false end
local lost = tonumber(n) - redis.call('LLEN', KEYS[2])
local from = math.max(tonumber(ARGV[1]), lost + 1)
local last = tonumber(ARGV[1]) + tonumber(ARGV[2]) - 1
local page = {from}
if last < from then return page end
local entries = redis.call('LRANGE', KEYS[2], from - lost - 1, last - lost - 1)
for i = 1, #entries do page[i + 1] = entries[i] end
return page
`

// sessionScript keeps a session's record. KEYS: session. ARGV: thread, tenant, key, created, seen, TTL in ms (0 none). A
// thread's field holds the record's size at its beginning, which gives their order.
const sessionScript = `
redis.call('HSETNX', KEYS[1], 'created', ARGV[4])
redis.call('HSET', KEYS[1], 'seen', ARGV[5])
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'tenant', ARGV[2]) end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'key', ARGV[3]) end
redis.call('HSETNX', KEYS[1], 't:' .. ARGV[1], redis.call('HLEN', KEYS[1]))
if ARGV[6] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
return 1
`

// unlockScript lets go of a lock only if it is still the caller's. KEYS: lock. ARGV: token.
const unlockScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`
