package redisstore

// A write may be sent twice, when a connection was cut and nobody knows what reached the server. So each carries a token,
// which its thread's record keeps in the field o, and the second time it changes nothing.

// appendScript appends a batch to a thread's record and log.
//
// KEYS: record, log, traces left. ARGV: point, whether that may begin a thread, record, next point, condensations, threads it
// shares the logs of, TTL in ms (0 none), token, traces it leaves, events... It returns the field k, or nil if the batch is
// stale.
//
// A log that was evicted alone does no harm: the entries that are left are always the newest. All three keys are there from
// the start, because a Cluster takes no script of which one key is missing while it moves their slot.
const appendScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'k')
if was[2] == ARGV[8] then return was[3] end
if not was[1] then
  if ARGV[2] ~= '1' then return false end
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'k', ARGV[6])
  was[3] = ARGV[6]
elseif was[1] ~= ARGV[1] then
  return false
end
for i = 10, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
if ARGV[9] ~= '' or not was[1] then redis.call('RPUSH', KEYS[3], ARGV[9]) end
redis.call('HINCRBY', KEYS[1], 'n', #ARGV - 9)
redis.call('HSET', KEYS[1], 'r', ARGV[3], 'l', ARGV[4], 'o', ARGV[8])
if ARGV[7] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
  redis.call('PEXPIRE', KEYS[3], ARGV[7])
end
return was[3]
`

// condenseScript logs a condensation. KEYS: record, log, traces left. ARGV: condensation, summary, event, TTL in ms (0
// none), token, whether it answers a request. It returns the Seq, or nil if there is no such thread.
const condenseScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'n', 'c')
if not was[1] then return false end
if was[2] == ARGV[5] then return tonumber(was[3]) end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
local name = string.format('%.0f', seq)
local list = was[4] or ''
redis.call('HSET', KEYS[1], 'c', list .. name .. ':' .. #ARGV[1] .. ':' .. ARGV[1], 's' .. name, ARGV[2], 'o', ARGV[5])
redis.call('RPUSH', KEYS[2], ARGV[3])
if ARGV[6] == '1' then redis.call('HDEL', KEYS[1], 'q') end
if ARGV[4] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
return seq
`

// requestScript logs a request for a condensation. KEYS: record, log, traces left. ARGV: event, TTL in ms (0 none), token.
// It returns the Seq, or nil if there is no such thread.
const requestScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'n')
if not was[1] then return false end
if was[2] == ARGV[3] then return tonumber(was[3]) end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
redis.call('HSET', KEYS[1], 'q', string.format('%.0f', seq), 'o', ARGV[3])
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

// sessionScript keeps a session's record. KEYS: record, the threads that are too many to list. ARGV: thread, tenant, key,
// created, seen, TTL in ms (0 none), how many threads to list, now in ms, the command that sets what may be there already
// (HSET, or HSETNX while it is not certain yet that the thread begins), threads it shares the logs of... The field next
// counts the threads that ever began; a thread's own holds its number. Those that are too many go some at a time, so that
// the others cost nothing; they are kept by name until they have expired, to be deleted with the session.
const sessionScript = `
redis.call('HSETNX', KEYS[1], 'created', ARGV[4])
redis.call(ARGV[9], KEYS[1], 'seen', ARGV[5])
if ARGV[2] ~= '' then redis.call(ARGV[9], KEYS[1], 'tenant', ARGV[2]) end
if ARGV[3] ~= '' then redis.call(ARGV[9], KEYS[1], 'key', ARGV[3]) end
for i = 10, #ARGV do redis.call('ZADD', KEYS[2], 'XX', ARGV[8], ARGV[i]) end
if redis.call('HEXISTS', KEYS[1], 't:' .. ARGV[1]) == 0 then
  local number = redis.call('HINCRBY', KEYS[1], 'next', 1)
  redis.call('HSET', KEYS[1], 't:' .. ARGV[1], number)
  local most = tonumber(ARGV[7])
  if redis.call('HLEN', KEYS[1]) > most + most / 4 then
    local all = redis.call('HGETALL', KEYS[1])
    for i = 1, #all, 2 do
      if string.sub(all[i], 1, 2) == 't:' and tonumber(all[i + 1]) <= number - most then
        redis.call('HDEL', KEYS[1], all[i])
        redis.call('ZADD', KEYS[2], ARGV[8], string.sub(all[i], 3))
      end
    end
    if ARGV[6] ~= '0' then
      redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', ARGV[8] - ARGV[6]))
    end
  end
end
if ARGV[6] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
return 1
`

// lockScript takes a lock, which the same token may do twice. KEYS: lock. ARGV: token, time in ms.
const lockScript = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
return 0
`

// unlockScript lets go of a lock only if it is still the caller's. KEYS: lock. ARGV: token.
const unlockScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`

// takeSessionScript puts a session's record aside to be deleted. KEYS: record, where to, the threads that it does not list.
// It returns whether there was one, and then all fields that are aside.
const takeSessionScript = `
local there = redis.call('EXISTS', KEYS[1])
local unlisted = redis.call('ZRANGE', KEYS[3], 0, -1)
if there == 1 then
  if redis.call('EXISTS', KEYS[2]) == 1 then
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do redis.call('HSET', KEYS[2], fields[i], fields[i + 1]) end
    redis.call('DEL', KEYS[1])
  else
    redis.call('RENAME', KEYS[1], KEYS[2])
  end
end
for _, name in ipairs(unlisted) do redis.call('HSET', KEYS[2], 't:' .. name, 0) end
redis.call('DEL', KEYS[3])
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
