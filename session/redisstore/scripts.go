package redisstore

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// A write may be sent twice, if its connection broke and it is unknown whether the write reached the server. Each write
// therefore carries a token, which is stored in the field o of its thread's record, and a repeated write changes nothing.

// appendScript appends a batch to a thread's record and log. If it gets their keys too, it also writes the session's record
// and the indexes.
//
// KEYS: record, log, lasting traces left; and, unless they are in other slots: session, its unlisted threads, needed threads..., places...,
// traces.... ARGV: point, whether the batch may begin the thread, record, next point, condensations, threads whose logs the thread shares,
// TTL in ms (0 for none), lease in ms, token, lasting traces that the batch leaves, eight arguments for join, number of needed threads, the
// end of the first needed thread's point (empty for any), the place that traces point to, how many traces at the end keep the place that
// they point to already, the recent traces that the batch leaves, the prefix of the keys of traces, what the places of the thread begin with,
// chain hashes whose places it deletes, the prefix of the keys of places, number of events, events..., places.... It returns whether the lease was renewed, the field k, and the recent traces to delete, or
// nil if the batch is stale. It deletes those traces itself, unless they are in other slots.
//
// The lease is somewhat longer than the TTL, so that it is renewed now and then instead of with each step. It is also renewed
// if a key is new because it was evicted. An evicted log does no harm, because the remaining entries are always the newest.
// The first write must be one that needs memory: if a full server accepts it, it does not refuse the later ones. All three
// keys exist from the start, because a Cluster that is moving their slot refuses a script if one of its keys is missing.
var appendScript = joinFunction + recentFunction + `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'k', 'n', 'm', 'x')
if was[2] == ARGV[9] then return {1, was[3], ''} end
local begins = not was[1]
if begins and ARGV[2] ~= '1' or was[1] and was[1] ~= ARGV[1] then return false end
local needed = tonumber(ARGV[19])
for i = 1, KEYS[4] and needed or 0 do
  local point = redis.call('HGET', KEYS[5 + i], 'l')
  if not point or i == 1 and ARGV[20] ~= '' and string.sub(point, -#ARGV[20]) ~= ARGV[20] then return false end
end
local ttl, lease, due = tonumber(ARGV[7]), tonumber(ARGV[8]), begins
if ttl > 0 and not due then
  local left = redis.call('PTTL', KEYS[1])
  due = left < ttl or left > lease
end
local firsts, events = tonumber(ARGV[22]), tonumber(ARGV[28])
local kept, excess = recent(not begins and was[6] or '', ARGV[23])
local number = string.format('%.0f', (begins and 0 or was[4] or 0) + events)
redis.call('HSET', KEYS[1], 'r', ARGV[3], 'l', ARGV[4], 'o', ARGV[9], 'n', number, 'm', (begins and 0 or was[5] or 0) + 1, 'x', kept)
if begins then
  was[3] = ARGV[6]
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'k', ARGV[6])
  redis.call('DEL', KEYS[2], KEYS[3])
end
for from = 29, 28 + events, 1000 do
  local to = math.min(from + 999, 28 + events)
  due = redis.call('RPUSH', KEYS[2], unpack(ARGV, from, to)) == to - from + 1 or due
end
if begins or ARGV[10] ~= '' then due = redis.call('RPUSH', KEYS[3], ARGV[10]) == 1 or due end
if due and ttl > 0 then for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], lease) end end
if KEYS[4] and ARGV[11] ~= '' then join(KEYS[4], KEYS[5], due, 'HSET', lease, 10) end
local function set(key, value, ...)
  if ttl > 0 then redis.call('SET', key, value, 'PX', ttl, ...) else redis.call('SET', key, value, ...) end
end
local places = #ARGV - 28 - events
for i = 1, places do set(KEYS[5 + needed + i], ARGV[28 + events + i]) end
for i = 6 + needed + places, #KEYS - firsts do set(KEYS[i], ARGV[21]) end
for i = math.max(#KEYS - firsts + 1, 6 + needed + places), #KEYS do set(KEYS[i], ARGV[21], 'NX') end
if KEYS[4] then
  drop(excess, ARGV[24], ARGV[25])
  drop(ARGV[26], ARGV[27], ARGV[25])
end
return {due and 1 or 0, was[3], KEYS[4] and '' or excess}
`

// recentFunction defines two functions. recent adds to the recent traces of a thread, and returns the newest ones, and those that are too
// many. drop deletes traces, unless they point to another thread by now.
var recentFunction = fmt.Sprintf(`
local shortLength, maxRecent = %d, %d
local function drop(hashes, prefix, places)
  for i = 1, #hashes, shortLength do
    local key = prefix .. string.sub(hashes, i, i + shortLength - 1)
    if string.sub(redis.call('GET', key) or '', 1, #places) == places then redis.call('DEL', key) end
  end
end
local function recent(list, more)
  list = list .. more
  local last, kept = {}, {}
  for i = 1, #list, shortLength do last[string.sub(list, i, i + shortLength - 1)] = i end
  for i = 1, #list, shortLength do
    local hash = string.sub(list, i, i + shortLength - 1)
    if last[hash] == i then kept[#kept + 1] = hash end
  end
  local excess = math.max(#kept - maxRecent, 0)
  return table.concat(kept, '', excess + 1), table.concat(kept, '', 1, excess)
end
`, codec.ShortLen, session.MaxRecent)

// dropScript deletes a key whose value begins like the places of a thread. KEYS: key. ARGV: what they begin with.
const dropScript = `
if string.sub(redis.call('GET', KEYS[1]) or '', 1, #ARGV[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`

// logScript logs a condensation or a request for one. KEYS: record, log, traces left. ARGV: event, TTL in ms (0 for none),
// token, "1" if the entry answers a request; and, for a condensation, itself and its summary. It returns the Seq, or nil if the thread does not exist.
const logScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'n', 'c')
if not was[1] then return false end
if was[2] == ARGV[3] then return tonumber(was[3]) end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
local name = string.format('%.0f', seq)
redis.call('HSET', KEYS[1], 'o', ARGV[3])
if ARGV[5] then
  local list = (was[4] or '') .. name .. ':' .. #ARGV[5] .. ':' .. ARGV[5]
  redis.call('HSET', KEYS[1], 'c', list, 's' .. name, ARGV[6])
else
  redis.call('HSET', KEYS[1], 'q', name)
end
redis.call('RPUSH', KEYS[2], ARGV[1])
if ARGV[4] == '1' then redis.call('HDEL', KEYS[1], 'p', 'q') end
if ARGV[2] ~= '0' then for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end end
return seq
`

// prepareScript stores a prepared condensation. KEYS: record. ARGV: condensation. It returns nil if the thread does not
// exist.
const prepareScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return false end
redis.call('HSET', KEYS[1], 'p', ARGV[1])
return 1
`

// enterScript adds an entry to an experiment. KEYS: experiment. ARGV: when the session began, when the experiment begins if
// this is its first entry, TTL in ms (0 for none), then pairs of a field and an amount.
const enterScript = `
redis.call('HSETNX', KEYS[1], 'since', ARGV[2])
if tonumber(ARGV[3]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'since')) then return 0 end
for i = 4, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
`

// saveScript adds to a thread's savings, once for each token. KEYS: record. ARGV: token, a model without a price or "",
// then pairs of a field and an amount. It returns nil if the thread does not exist.
const saveScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'vo')
if not was[1] then return false end
if was[2] == ARGV[1] then return 1 end
redis.call('HSET', KEYS[1], 'vo', ARGV[1])
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'vm', ARGV[2]) end
for i = 3, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
`

// markScript adds to the traces that a thread left. If it gets their keys too, it makes the traces point to the thread. KEYS: record,
// lasting traces left, traces.... ARGV: lasting traces, TTL in ms (0 for none), lease in ms, the place they point to, how many traces at the
// end keep the place that they point to already, recent traces, the prefix of the keys of traces, what the places of the thread begin with,
// the answer.
// It returns nil if the thread does not exist, and otherwise the recent traces to delete. It deletes them itself, unless they are in other
// slots. In that case it leaves them to the next append until they are twice too many.
var markScript = recentFunction + `
local was = redis.call('HMGET', KEYS[1], 'l', 'x')
if not was[1] then return false end
local ttl = tonumber(ARGV[2])
local left = {ARGV[9]}
if ARGV[1] ~= '' then left[2] = ARGV[1] end
if redis.call('RPUSH', KEYS[2], unpack(left)) == #left and ttl > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
local kept, excess = (was[2] or '') .. ARGV[6], ''
if #kept > (KEYS[3] and 1 or 2) * maxRecent * shortLength then kept, excess = recent(kept, '') end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'x', kept) end
for i = 3, #KEYS do
  local options = {}
  if ttl > 0 then options = {'PX', ttl} end
  if i > #KEYS - tonumber(ARGV[5]) then options[#options + 1] = 'NX' end
  redis.call('SET', KEYS[i], ARGV[4], unpack(options))
end
if KEYS[3] then drop(excess, ARGV[7], ARGV[8]) end
return KEYS[3] and '' or excess
`

// eventsScript reads a page of the log. KEYS: record, log. ARGV: the entry to begin with, the number of entries, negative to read
// back from it, and the number of bytes that end the page. It returns the Seq of the entry read first, followed by the entries as they were
// read, or nil if the thread does not exist.
const eventsScript = `
local n = tonumber(redis.call('HGET', KEYS[1], 'n'))
if not n then return false end
local lost = math.max(n - redis.call('LLEN', KEYS[2]), 0)
local at, limit, left, step = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), 1
if limit < 0 then at, step = math.min(at, n), -1 else at = math.max(at, lost + 1) end
local page = {at}
while #page <= math.abs(limit) and at > lost and at <= n and left > 0 do
  local entry = redis.call('LRANGE', KEYS[2], at - lost - 1, at - lost - 1)[1]
  page[#page + 1] = entry
  left, at = left - #entry, at + step
end
return page
`

// joinFunction adds a thread to a session's record: join(record, unlisted threads, whether to update an existing record,
// the command that sets fields, lease in ms, index of the argument before its own). Its own arguments are: thread, tenant,
// key, created, seen, maximum number of threads to list, now in ms, maximum number of names.
//
// The field next counts the threads that ever began, and the field of each thread holds its number. Threads above the
// maximum are moved out in groups, so that most calls need not move any. Their ids are kept until they have expired, so
// that they can be deleted with the session. The record's last seen time may be old; those of the threads are exact.
//
// The field key is the session key that came first. Each further one has a field with its number, and the field names counts
// them. The field requests counts calls, but not those of a thread that may not begin (HSETNX), which add no name either.
const joinFunction = `
local function join(record, unlisted, due, set, lease, at)
  local id, most, now = ARGV[at + 1], tonumber(ARGV[at + 6]), ARGV[at + 7]
  local tenant, key = ARGV[at + 2], ARGV[at + 3]
  local was = redis.call('HMGET', record, 't:' .. id, 'tenant', 'key', 'k:' .. key, 'names')
  local names, certain = tonumber(was[5] or 0), set == 'HSET'
  local known = key == '' or key == was[3] or was[4] or was[3] and names >= tonumber(ARGV[at + 8])
  if certain then redis.call('HINCRBY', record, 'requests', 1) end
  if was[1] and not due and (tenant == '' or tenant == was[2]) and known then return end
  redis.call('HSETNX', record, 'created', ARGV[at + 4])
  redis.call(set, record, 'seen', ARGV[at + 5])
  if tenant ~= '' then redis.call(set, record, 'tenant', tenant) end
  if not known and not was[3] then redis.call(set, record, 'key', key) end
  if not known and was[3] and certain then redis.call('HSET', record, 'k:' .. key, redis.call('HINCRBY', record, 'names', 1)) end
  if not was[1] then
    local number = redis.call('HINCRBY', record, 'next', 1)
    redis.call('HSET', record, 't:' .. id, number)
    if redis.call('HLEN', record) - names > most + most / 4 then
      local all = redis.call('HGETALL', record)
      for i = 1, #all, 2 do
        if string.sub(all[i], 1, 2) == 't:' and tonumber(all[i + 1]) <= number - most then
          redis.call('HDEL', record, all[i])
          redis.call('ZADD', unlisted, now, string.sub(all[i], 3))
        end
      end
      if lease > 0 then redis.call('ZREMRANGEBYSCORE', unlisted, '-inf', string.format('%.0f', now - lease)) end
    end
  end
  if lease > 0 then
    redis.call('PEXPIRE', record, lease)
    redis.call('PEXPIRE', unlisted, lease)
  end
end
`

// sessionScript calls join. KEYS: record, unlisted threads. ARGV: lease in ms (0 for none), whether to update an existing
// record, the command that sets fields (HSET, or HSETNX while it is uncertain whether the thread will begin), then the
// arguments of join.
const sessionScript = joinFunction + `
join(KEYS[1], KEYS[2], ARGV[2] == '1', ARGV[3], tonumber(ARGV[1]), 3)
return 1
`

// lockScript takes a lock, or renews it if the token holds it already. KEYS: lock. ARGV: token, ttl in ms. It returns
// whether the token holds the lock.
const lockScript = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
`

// drawScript takes from a leaky bucket. KEYS: bucket. ARGV: n, amount that leaks per minute, whether it is owed, now in ms.
// It returns how many ms to wait, 0 if it took n. The script rounds the numbers that it stores by formatting them as text.
const drawScript = `
local n, most, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local was = redis.call('HMGET', KEYS[1], 'h', 't')
local held, at = tonumber(was[1] or '0'), tonumber(was[2] or ARGV[4])
if now > at then held = math.max(held - (now - at) * most / 60000, 0) end
if ARGV[3] ~= '1' then
  local over = held + math.max(math.min(n, most), 1) - most
  if over > 0 then return math.max(math.ceil(over * 60000 / most), 1) end
end
if n == 0 then return 0 end
held = math.max(held + n, 0)
redis.call('HSET', KEYS[1], 'h', string.format('%.3f', held), 't', string.format('%.0f', math.max(now, at)))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', held * 60000 / most + 60000))
return 0
`

// detachSessionScript moves a session's record away for deletion. KEYS: record, new key, unlisted threads. It returns
// whether there was a record, followed by all fields under the new key.
var detachSessionScript = fmt.Sprintf("local journalBlock, journalBlocks = %d, %d", journalBlock, journalBlocks) + `
local there = redis.call('EXISTS', KEYS[1])
local unlisted = redis.call('ZRANGE', KEYS[3], 0, -1)
if there == 1 then
  local blocks = math.ceil(tonumber(redis.call('HGET', KEYS[1], 'jn') or 0) / journalBlock)
  for i = math.max(blocks - journalBlocks, 0), blocks do redis.call('DEL', KEYS[1] .. 'j' .. string.format('%.0f', i)) end
  redis.call('HDEL', KEYS[1], 'jn', 'jo')
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

// detachThreadScript deletes a thread's record and lock and moves away the lists that name its places and traces. KEYS:
// record, log, lasting traces left, lock, new key of the log, new key of the traces left.
const detachThreadScript = `
local recent = redis.call('HGET', KEYS[1], 'x')
if recent then redis.call('RPUSH', KEYS[3], 'h' .. recent) end
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

// leaveScript removes a thread from its session's record, and deletes the record with its last thread. KEYS: session. ARGV:
// thread.
const leaveScript = `
redis.call('HDEL', KEYS[1], 't:' .. ARGV[1])
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(name, 1, 2) == 't:' then return 0 end
end
return redis.call('DEL', KEYS[1])
`

// deleteScript deletes a key if it still has the given value. KEYS: key. ARGV: value.
const deleteScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`
