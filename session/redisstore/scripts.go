package redisstore

// appendScript appends a batch to a thread's record and log.
//
// KEYS: record, log, traces left. ARGV: point, whether that may begin a thread, record, next point, condensations, threads it
// shares the logs of, TTL in ms (0 none), traces it leaves, events... It returns the field k, or nil if the batch is stale.
//
// A log that was evicted alone does no harm: the entries that are left are always the newest.
const appendScript = `
local len = redis.call('HGET', KEYS[1], 'l')
if not len then
  if ARGV[2] ~= '1' then return false end
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'k', ARGV[6])
elseif len ~= ARGV[1] then
  return false
end
for i = 9, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
if ARGV[8] ~= '' then redis.call('RPUSH', KEYS[3], ARGV[8]) end
redis.call('HINCRBY', KEYS[1], 'n', #ARGV - 8)
redis.call('HSET', KEYS[1], 'r', ARGV[3], 'l', ARGV[4])
if ARGV[7] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
  redis.call('PEXPIRE', KEYS[3], ARGV[7])
end
return redis.call('HGET', KEYS[1], 'k')
`

// condenseScript logs a condensation. KEYS: record, log, traces left. ARGV: condensation, summary, event, TTL in ms (0
// none), whether it answers a request. It returns the Seq, or nil if there is no such thread.
const condenseScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return false end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
local name = string.format('%.0f', seq)
local list = redis.call('HGET', KEYS[1], 'c') or ''
redis.call('HSET', KEYS[1], 'c', list .. name .. ':' .. #ARGV[1] .. ':' .. ARGV[1], 's' .. name, ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[3])
if ARGV[5] == '1' then redis.call('HDEL', KEYS[1], 'q') end
if ARGV[4] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
return seq
`

// requestScript logs a request for a condensation. KEYS: record, log, traces left. ARGV: event, TTL in ms (0 none). It
// returns the Seq, or nil if there is no such thread.
const requestScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return false end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
redis.call('HSET', KEYS[1], 'q', string.format('%.0f', seq))
redis.call('RPUSH', KEYS[2], ARGV[1])
if ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
return seq
`

// markScript notes which traces a thread leaves. KEYS: record, traces left. ARGV: traces, TTL in ms (0 none). It returns
// 0 if there is no such thread.
const markScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[1])
if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1
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

// sessionScript keeps a session's record. KEYS: session. ARGV: thread, tenant, key, created, seen, TTL in ms (0 none), and
// the command that sets what may be there already: HSET, or HSETNX while it is not certain yet that the thread begins. A
// thread's field holds the record's size at its beginning, which gives their order.
const sessionScript = `
redis.call('HSETNX', KEYS[1], 'created', ARGV[4])
redis.call(ARGV[7], KEYS[1], 'seen', ARGV[5])
if ARGV[2] ~= '' then redis.call(ARGV[7], KEYS[1], 'tenant', ARGV[2]) end
if ARGV[3] ~= '' then redis.call(ARGV[7], KEYS[1], 'key', ARGV[3]) end
redis.call('HSETNX', KEYS[1], 't:' .. ARGV[1], redis.call('HLEN', KEYS[1]))
if ARGV[6] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
return 1
`

// unlockScript lets go of a lock only if it is still the caller's. KEYS: lock. ARGV: token.
const unlockScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`

// takeSessionScript puts a session's record aside to be deleted. KEYS: record, where to. It returns whether there was one,
// and then all fields that are aside.
const takeSessionScript = `
local there = redis.call('EXISTS', KEYS[1])
if there == 1 then
  if redis.call('EXISTS', KEYS[2]) == 1 then
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do redis.call('HSET', KEYS[2], fields[i], fields[i + 1]) end
    redis.call('DEL', KEYS[1])
  else
    redis.call('RENAME', KEYS[1], KEYS[2])
  end
end
local names = redis.call('HKEYS', KEYS[2])
table.insert(names, 1, tostring(there))
return names
`

// takeThreadScript ends a thread and puts aside what tells which places and traces are its. KEYS: record, log, traces
// left, lock, where the log goes, where the traces go.
const takeThreadScript = `
redis.call('DEL', KEYS[1], KEYS[4])
for i = 2, 3 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    if redis.call('EXISTS', KEYS[i + 3]) == 1 then
      for _, entry in ipairs(redis.call('LRANGE', KEYS[i], 0, -1)) do redis.call('RPUSH', KEYS[i + 3], entry) end
      redis.call('DEL', KEYS[i])
    else
      redis.call('RENAME', KEYS[i], KEYS[i + 3])
    end
  end
end
return 1
`

// leaveScript takes a thread off its session's record, and deletes that with its last thread. KEYS: session. ARGV: thread.
const leaveScript = `
redis.call('HDEL', KEYS[1], 't:' .. ARGV[1])
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(name, 1, 2) == 't:' then return 0 end
end
return redis.call('DEL', KEYS[1])
`

// dropScript deletes a value only if it is still what the caller has seen. KEYS: key. ARGV: value.
const dropScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`
