-- KEYS[1] readers  KEYS[2] writers  KEYS[3] groups of waiting writers  ARGV[1] token
-- ARGV[2] lease in ms  -> {1, 0} granted, {0, ms until all blocking leases have expired}
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
local free = math.max(last(KEYS[2]), last(KEYS[3]))
-- A writer waits for our first read, so our second read must not wait for that writer.
if free > now and not ours(KEYS[2]) and not ours(KEYS[1]) then
  return {0, free - now}
end
redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('pexpireat', KEYS[1], last(KEYS[1]))
return {1, 0}
