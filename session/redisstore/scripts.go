package redisstore

// A write may be sent twice, when a connection was cut and it is not known what reached the server. So each carries a token,
// which its thread's record keeps in the field o, and the second time it changes nothing.

// appendScript appends a batch to a thread's record and log; where it is given their keys as well, also to the session's
// record and to the indexes.
//
// KEYS: record, log, traces left; and, unless they lie in other slots: session, the threads that it does not list, parent,
// places..., traces.... ARGV: point, whether that may begin a thread, record, next point, condensations, threads it shares
// the logs of, TTL in ms (0 none), lease in ms, token, traces it leaves, then seven for join, whether it needs its parent,
// how that one's point ends (empty: any), what traces point to, how many events, events..., places.... It returns whether
// the lease was renewed and the field k, or nil if the batch is stale.
//
// The lease is somewhat longer than the TTL, so that it is renewed now and then and not with each step; but also where a key
// is new, since it was evicted. A log that was evicted alone does no harm: the entries that are left are always the newest.
// The first write must be one that takes memory: later ones are not refused by a full server. All three keys are there from
// the start, because a Cluster takes no script of which one key is missing while it moves their slot.
const appendScript = joinFunction + `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'k', 'n')
if was[2] == ARGV[9] then return {1, was[3]} end
local begins = not was[1]
if begins and ARGV[2] ~= '1' or was[1] and was[1] ~= ARGV[1] then return false end
if KEYS[6] and ARGV[18] == '1' then
  local parent = redis.call('HGET', KEYS[6], 'l')
  if not parent or ARGV[19] ~= '' and string.sub(parent, -#ARGV[19]) ~= ARGV[19] then return false end
end
local ttl, lease, due = tonumber(ARGV[7]), tonumber(ARGV[8]), begins
if ttl > 0 and not due then
  local left = redis.call('PTTL', KEYS[1])
  due = left < ttl or left > lease
end
local events = tonumber(ARGV[21])
local number = string.format('%.0f', (begins and 0 or was[4] or 0) + events)
redis.call('HSET', KEYS[1], 'r', ARGV[3], 'l', ARGV[4], 'o', ARGV[9], 'n', number)
if begins then
  was[3] = ARGV[6]
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'k', ARGV[6])
  redis.call('DEL', KEYS[2], KEYS[3])
end
for from = 22, 21 + events, 1000 do
  local to = math.min(from + 999, 21 + events)
  due = redis.call('RPUSH', KEYS[2], unpack(ARGV, from, to)) == to - from + 1 or due
end
if begins or ARGV[10] ~= '' then due = redis.call('RPUSH', KEYS[3], ARGV[10]) == 1 or due end
if due and ttl > 0 then for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], lease) end end
if KEYS[4] and ARGV[11] ~= '' then join(KEYS[4], KEYS[5], due, 'HSET', lease, 10) end
local function set(key, value)
  if ttl > 0 then redis.call('SET', key, value, 'PX', ttl) else redis.call('SET', key, value) end
end
local places = #ARGV - 21 - events
for i = 1, places do set(KEYS[6 + i], ARGV[21 + events + i]) end
for i = 7 + places, #KEYS do set(KEYS[i], ARGV[20]) end
return {due and 1 or 0, was[3]}
`

// noteScript logs a condensation, or a request for one. KEYS: record, log, traces left. ARGV: event, TTL in ms (0 none), token,
// whether it answers a request
// or is an aside, and of a condensation itself and its summary. It returns the Seq, or nil if there is no such
// thread.
const noteScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'o', 'n', 'c')
if not was[1] then return false end
if was[2] == ARGV[3] then return tonumber(was[3]) end
local seq = redis.call('HINCRBY', KEYS[1], 'n', 1)
local name = string.format('%.0f', seq)
redis.call('HSET', KEYS[1], 'o', ARGV[3])
if ARGV[5] then
  local list = (was[4] or '') .. name .. ':' .. #ARGV[5] .. ':' .. ARGV[5]
  redis.call('HSET', KEYS[1], 'c', list, 's' .. name, ARGV[6])
  if ARGV[4] ~= 'aside' then redis.call('HDEL', KEYS[1], 'p') end
else
  redis.call('HSET', KEYS[1], 'q', name)
end
redis.call('RPUSH', KEYS[2], ARGV[1])
if ARGV[4] == '1' then redis.call('HDEL', KEYS[1], 'q') end
if ARGV[2] ~= '0' then for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end end
return seq
`

// prepareScript keeps a condensation that is not logged. KEYS: record. ARGV: condensation. It returns nil if there is no such thread.
const prepareScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return false end
redis.call('HSET', KEYS[1], 'p', ARGV[1])
return 1
`

// enterScript adds to an experiment. KEYS: experiment. ARGV: when the thread began, when the experiment begins if this is its first entry,
// TTL in ms (0 none), then fields and what is added to them.
const enterScript = `
redis.call('HSETNX', KEYS[1], 'since', ARGV[2])
if tonumber(ARGV[3]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'since')) then return 0 end
for i = 4, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
`

// saveScript adds to a thread's savings, once for each token. KEYS: record. ARGV: token, a model without a price or nothing, then fields
// and what is added to them. It returns nil if there is no such thread.
const saveScript = `
local was = redis.call('HMGET', KEYS[1], 'l', 'vo')
if not was[1] then return false end
if was[2] == ARGV[1] then return 1 end
redis.call('HSET', KEYS[1], 'vo', ARGV[1])
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'vm', ARGV[2]) end
for i = 3, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
`

// markScript notes which traces a thread leaves, and, where it is given their keys as well, makes them point to it. KEYS:
// record, traces left, traces.... ARGV: traces, TTL in ms (0 none), lease in ms, what they point to. It returns nil if there is
// no such thread.
const markScript = `
if redis.call('HEXISTS', KEYS[1], 'l') == 0 then return false end
local ttl = tonumber(ARGV[2])
if redis.call('RPUSH', KEYS[2], ARGV[1]) == 1 and ttl > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
for i = 3, #KEYS do
  if ttl > 0 then redis.call('SET', KEYS[i], ARGV[4], 'PX', ttl) else redis.call('SET', KEYS[i], ARGV[4]) end
end
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

// joinFunction keeps a session's record: join(record, the threads that are too many to list, whether it is time to write
// what is there already, the command that sets it, lease in ms, the argument before its own). Its arguments: thread, tenant,
// key, created, seen, how many threads to list, now in ms.
//
// The field next counts the threads that ever began; a thread's own holds its number. Those that are too many go some at a
// time, so that the others cost nothing; they are kept by name until they have expired, to be deleted with the session. When
// a session was last seen its threads know better than its record.
const joinFunction = `
local function join(record, unlisted, due, set, lease, at)
  local id, most, now = ARGV[at + 1], tonumber(ARGV[at + 6]), ARGV[at + 7]
  local tenant, key = ARGV[at + 2], ARGV[at + 3]
  local was = redis.call('HMGET', record, 't:' .. id, 'tenant', 'key')
  if was[1] and not due and (tenant == '' or tenant == was[2]) and (key == '' or key == was[3]) then return end
  redis.call('HSETNX', record, 'created', ARGV[at + 4])
  redis.call(set, record, 'seen', ARGV[at + 5])
  if tenant ~= '' then redis.call(set, record, 'tenant', tenant) end
  if key ~= '' then redis.call(set, record, 'key', key) end
  if not was[1] then
    local number = redis.call('HINCRBY', record, 'next', 1)
    redis.call('HSET', record, 't:' .. id, number)
    if redis.call('HLEN', record) > most + most / 4 then
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

// sessionScript is join alone. KEYS: record, the threads that are too many to list. ARGV: lease in ms (0 none), whether it is
// time to write what is there already, the command that sets it (HSET, or HSETNX while it is not certain yet that the thread
// begins), then those of join.
const sessionScript = joinFunction + `
join(KEYS[1], KEYS[2], ARGV[2] == '1', ARGV[3], tonumber(ARGV[1]), 3)
return 1
`

// lockScript takes a lock, or renews it for the token that has it. KEYS: lock. ARGV: token, time in ms.
const lockScript = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
`

// unlockScript releases a lock only if it is still the caller's. KEYS: lock. ARGV: token.
const unlockScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`

// drawScript takes from a bucket that leaks. KEYS: bucket. ARGV: n, what leaks in a minute, whether it is owed, now in ms. It returns how
// many ms to wait, 0 if it was taken. What is kept is rounded by Lua, so it is written as text.
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
