-- KEYS[1] readers  KEYS[2] writers  KEYS[3] groups of waiting writers  ARGV[1] token
-- ARGV[2] lease in ms  ARGV[3] our group  ARGV[4] the group's lease in ms, 0: we do not wait
-- ARGV[5] 1: first in the group  -> {1, 0} granted, {0, ms until a new try}, {-1, 0} we only read
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function last(set) -- when the last lease of the set expires
  return tonumber(redis.call('zrange', set, -1, -1, 'withscores')[2] or now)
end

local function ours(set) -- whether the set has a token (owner:uuid) of our owner
  for _, token in ipairs(redis.call('zrange', set, 0, -1)) do
    if string.match(token, '^(.*):') == string.match(ARGV[1], '^(.*):') then
      return true
    end
  end
  return false
end

for _, set in ipairs(KEYS) do
  redis.call('zremrangebyscore', set, '-inf', now)
end
if not ours(KEYS[2]) then
  if ours(KEYS[1]) then
    return {-1, 0}
  end
  local free = math.max(last(KEYS[1]), last(KEYS[2]))
  if ARGV[5] ~= '1' then -- do not overtake waiting writers
    free = math.max(free, last(KEYS[3]))
  end
  if free > now then
    if ARGV[4] ~= '0' then
      redis.call('zadd', KEYS[3], now + ARGV[4], ARGV[3])
      redis.call('pexpireat', KEYS[3], last(KEYS[3]))
    end
    return {0, free - now}
  end
end
redis.call('zadd', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('pexpireat', KEYS[2], last(KEYS[2]))
return {1, 0}
