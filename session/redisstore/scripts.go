package redisstore

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// tokenField is the field of a record that holds the token of the last commit, see commitScript.
const tokenField = "o"

// commitScript commits parts, and what index entries it gets. It is the only script that writes records.
//
// KEYS: for each part its record and its logs, and its lock if that is released; then index entries to put, and entries to delete.
// ARGV: as writing.script writes them: the token ("" if repeating the commit does no harm), what the values of index entries to delete begin with,
// what the keys of recent entries begin with ("" if they are in other slots), a header, fields to return, recent entries if it does not get their
// keys, the parts, and for entries to put their values.
//
// A write may be sent twice, if its connection broke and it is unknown whether the write reached the server. The token is therefore stored in the
// field o of the first record, and a repeated write changes nothing.
//
// The lease is somewhat longer than the TTL, so that it is renewed now and then instead of with each step. It is also renewed if a key is new
// because it was evicted. With renew = 2 the life stays as it is: a new log gets what is left of it. An evicted log does no harm, because the remaining entries are always the newest. The first write must be one that
// needs memory: if a full server accepts it, it does not refuse the later ones.
//
// It returns three numbers (the part whose conditions do not hold, or -1; whether the life of the first record was extended; the number of the last
// entry of its first log), the recent entries that are too many if it does not delete them, the sums of each part, and the fields.
var commitScript = fmt.Sprintf(`
local hashLength, recentField = %d, '%s'
local at, key = 0, 0
local function arg() at = at + 1; return ARGV[at] end
local function nums()
  local all = {}
  for n in string.gmatch(arg(), '-?%%d+') do all[#all + 1] = tonumber(n) end
  return all
end
local function list(n)
  local all = {}
  for i = 1, n do all[i] = arg() end
  return all
end
local token, owner, prefix, h = arg(), arg(), arg(), nums()
local ttl, count, putting, dropping, most, limit = h[1], h[2], h[3], h[4], h[5], h[6]
local wanted, recents, parts = list(h[7]), list(h[8]), {}

for i = 1, count do
  local letters, n = arg(), nums()
  local p = {lease = n[1], ttl = n[2], renew = n[3], clear = n[4] == 1, letters = letters, keys = {}}
  for j = 1, 1 + #letters do key = key + 1; p.keys[j] = KEYS[key] end
  if n[5] == 1 then key = key + 1; p.lock = KEYS[key] end
  p.conds, p.set, p.new, p.add, p.logs = list(2 * n[6]), list(2 * n[7]), list(2 * n[8]), list(2 * n[9]), {}
  for j = 1, n[10] do
    p.logs[j] = {letter = string.char(n[12 + 2 * j]), n = n[13 + 2 * j], from = at + 1}
    at = at + p.logs[j].n
  end
  p.listed, p.named, p.trim = list(2 * n[11]), list(2 * n[12]), list(2 * n[13])
  local names, seen = {}, {}
  local function need(name) if not seen[name] then seen[name] = true; names[#names + 1] = name end end
  for j = 1, #p.conds, 2 do
    local test, field, other, below = string.sub(p.conds[j], 1, 1), string.sub(p.conds[j], 2)
    need(field)
    if test == '<' then
      below, other = string.match(p.conds[j + 1], '^(%%S+) (.*)$')
      if other ~= '' then need(other) end
    end
    p.conds[j] = {test = test, field = field, value = p.conds[j + 1], other = other, below = tonumber(below)}
  end
  for j = 1, #p.new, 2 do need(p.new[j]) end
  for j = 1, #p.add, 2 do need(p.add[j]) end
  for j = 1, #p.logs do need('n' .. p.logs[j].letter) end
  for j = 1, #p.listed, 2 do need(p.listed[j]) end
  if i == 1 then
    if token ~= '' then need('o') end
    if h[9] == 1 then need(recentField) end
    for j = 1, #wanted do need(wanted[j]) end
  end
  p.was, p.exists = {}, false
  if #names > 0 then
    local got = redis.call('HMGET', p.keys[1], unpack(names))
    for j = 1, #names do
      if got[j] then p.was[names[j]], p.exists = got[j], true end
    end
  end
  parts[i] = p
end

local entries = {}
if putting > 0 then
  local values = list(tonumber(arg()))
  for flag, value in string.gmatch(arg(), '(%%a)(%%d+)') do
    entries[#entries + 1] = {value = values[tonumber(value)], first = flag == 'f'}
    if flag ~= 'n' then recents[#recents + 1] = string.sub(KEYS[key + #entries], -hashLength) end
  end
end

local repeated = token ~= '' and parts[1].was['o'] == token
for i = 1, repeated and 0 or count do
  local p = parts[i]
  for j = 1, #p.conds, 2 do
    local c, ok = p.conds[j], false
    local value = p.was[c.field]
    if c.test == '=' then ok = (value or '') == c.value end
    if c.test == '!' then ok = value ~= nil end
    if c.test == '<' then ok = tonumber(value or 0) + tonumber(p.was[c.other] or 0) < c.below end
    if not ok then return {i - 1 .. ' 0 0', '', ''} end
  end
end

local renewed, last, sums, fields = 0, 0, {}, {}
for i = 1, count do
  local p = parts[i]
  local record, sets, dels, now = p.keys[1], {}, {}, {}
  sums[i] = {}
  local function put(name, value)
    now[name] = value
    if value == '' then dels[#dels + 1] = name else sets[#sets + 1] = name; sets[#sets + 1] = value end
  end
  local function old(name) if now[name] ~= nil then return now[name] end return (repeated or not p.clear) and p.was[name] or '' end
  if repeated then
    for j = 1, #p.add, 2 do sums[i][#sums[i] + 1] = p.was[p.add[j]] or '0' end
    if i == 1 and p.logs[1] then last = p.was['n' .. p.logs[1].letter] or '0' end
  else
    for j = 1, #p.set, 2 do put(p.set[j], p.set[j + 1]) end
    for j = 1, #p.new, 2 do if old(p.new[j]) == '' then put(p.new[j], p.new[j + 1]) end end
    local large = {}
    for j = 1, #p.add, 2 do
      local sum = tonumber(old(p.add[j]) ~= '' and old(p.add[j]) or '0') + tonumber(p.add[j + 1])
      if math.abs(sum) < 2^52 and math.abs(tonumber(p.add[j + 1])) < 2^52 then
        put(p.add[j], string.format('%%.0f', sum))
        sums[i][#sums[i] + 1] = now[p.add[j]]
      else
        large[#large + 1] = j
        sums[i][#sums[i] + 1] = '0'
      end
    end
    local number = 0
    for j = 1, #p.logs do
      local name = 'n' .. p.logs[j].letter
      local n = string.format('%%.0f', tonumber(old(name) ~= '' and old(name) or '0') + p.logs[j].n)
      if p.logs[j].n > 0 then put(name, n) end
      if j == 1 then number = n end
    end
    if i == 1 then last = number end
    for j = 1, #p.listed, 2 do
      local joined = old(p.listed[j]) .. number .. ':' .. p.listed[j + 1]
      for k = #dels, 1, -1 do if dels[k] == p.listed[j] then table.remove(dels, k) end end
      put(p.listed[j], joined)
    end
    for j = 1, #p.named, 2 do put(p.named[j] .. number, p.named[j + 1]) end
    if i == 1 and token ~= '' and #sets > 0 then put('o', token) end
    if i == 1 and #recents > 0 then
      local all, seen, kept = old(recentField) .. table.concat(recents), {}, {}
      if #all > limit * hashLength then
        for k = 1, #all, hashLength do seen[string.sub(all, k, k + hashLength - 1)] = k end
        for k = 1, #all, hashLength do
          local hash = string.sub(all, k, k + hashLength - 1)
          if seen[hash] == k then kept[#kept + 1] = hash end
        end
        local excess = math.max(#kept - most, 0)
        p.excess = {unpack(kept, 1, excess)}
        all = table.concat(kept, '', excess + 1)
      end
      put(recentField, all)
    end
    local never = p.renew == 2
    local due = p.renew == 1 or not never and not p.exists or never and not p.exists and redis.call('EXISTS', record) == 0
    if i > 1 and p.renew == 0 and parts[1].due then due = true end
    if i == 1 and p.ttl > 0 and p.renew == 0 and not due then
      local left = redis.call('PTTL', record)
      due = left < p.ttl or left > p.lease
    end
    for j = 1, #sets, 2000 do redis.call('HSET', record, unpack(sets, j, math.min(j + 1999, #sets))) end
    if p.clear and #sets == 0 then
      redis.call('DEL', unpack(p.keys))
    elseif p.clear then
      for _, name in ipairs(redis.call('HKEYS', record)) do
        if (now[name] or '') == '' then redis.call('HDEL', record, name) end
      end
      if #p.letters > 0 then redis.call('DEL', unpack(p.keys, 2)) end
    end
    if p.lock then redis.call('DEL', p.lock) end
    if #dels > 0 and not p.clear then redis.call('HDEL', record, unpack(dels)) end
    for j = 1, #large do
      local name, n = p.add[large[j]], p.add[large[j] + 1]
      redis.call('HINCRBY', record, name, n)
      sums[i][(large[j] + 1) / 2] = redis.call('HGET', record, name)
    end
    for j = 1, #p.logs do
      local log, place = p.logs[j], string.find(p.letters, p.logs[j].letter, 1, true)
      for from = log.from, log.from + log.n - 1, 1000 do
        local to = math.min(from + 999, log.from + log.n - 1)
        local isNew = redis.call('RPUSH', p.keys[1 + place], unpack(ARGV, from, to)) == to - from + 1
        local left = isNew and never and not due and redis.call('PTTL', record) or 0
        if left > 0 then redis.call('PEXPIRE', p.keys[1 + place], left) end
        due = due or isNew and not never
      end
    end
    for j = 1, #p.trim, 2 do redis.call('LTRIM', p.keys[1 + string.find(p.letters, p.trim[j], 1, true)], -p.trim[j + 1], -1) end
    if due and p.ttl > 0 then
      for j = 1, #p.keys do redis.call('PEXPIRE', p.keys[j], p.lease) end
    end
    p.due = due
    if i == 1 and due then renewed = 1 end
  end
  if i == 1 then
    for j = 1, #wanted do fields[j] = old(wanted[j]) end
  end
end

for i = 1, putting do
  local options = {}
  if ttl > 0 then options = {'PX', ttl} end
  if entries[i].first then options[#options + 1] = 'NX' end
  redis.call('SET', KEYS[key + i], entries[i].value, unpack(options))
end
local function drop(name)
  if string.sub(redis.call('GET', name) or '', 1, #owner) == owner then redis.call('DEL', name) end
end
for i = 1, dropping do drop(KEYS[key + putting + i]) end
local excess = count > 0 and parts[1].excess or {}
if prefix ~= '' then
  for i = 1, #excess do drop(prefix .. excess[i]) end
  excess = {}
end
for i = 1, count do sums[i] = table.concat(sums[i], ' ') end
return {'-1 ' .. renewed .. ' ' .. last, table.concat(excess), table.concat(sums, ','), unpack(fields)}
`, store.HashLen, store.Recent)

// logScript reads a page of a log. KEYS: record, log. ARGV: field that counts the entries, the entry to begin with, the number of entries, negative
// to read back from it, and the number of bytes that end the page. It returns the number of the last entry of the log, that of the entry read
// first, and the entries as they were read, or nil if the record does not exist.
const logScript = `
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not n then
  if redis.call('EXISTS', KEYS[1]) == 0 then return false end
  return {0, 1}
end
local lost = math.max(n - redis.call('LLEN', KEYS[2]), 0)
local at, limit, left, step = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), 1
if limit < 0 then at, step = math.min(at, n), -1 else at = math.max(at, lost + 1) end
local page, chunk = {n, at}, 8
while #page - 2 < math.abs(limit) and at > lost and at <= n and left > 0 do
  local from, to = at, at + step * (chunk - 1)
  if step < 0 then from, to = math.max(to, lost + 1), at end
  local entries = redis.call('LRANGE', KEYS[2], from - lost - 1, to - lost - 1)
  local size = 0
  for i = 1, #entries do
    local entry = entries[step > 0 and i or #entries + 1 - i]
    if #page - 2 >= math.abs(limit) or left <= 0 then break end
    page[#page + 1] = entry
    left, at, size = left - #entry, at + step, size + #entry
  end
  if #entries == 0 then break end
  if size < 16384 then chunk = math.min(chunk * 2, 512) elseif size > 262144 then chunk = math.max(math.floor(chunk / 2), 1) end
end
return page
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
