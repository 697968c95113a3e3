-- KEYS[1] readers, writers or groups of waiting writers  KEYS[2] writers  KEYS[3] channel
-- ARGV[1] token, or id of a group  -> 1 released, 0 not held
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function last(set) -- when the last lease of the set expires
  return tonumber(redis.call('zrange', set, -1, -1, 'withscores')[2] or now)
end

redis.call('zremrangebyscore', KEYS[1], '-inf', now)
local mine = redis.call('zscore', KEYS[1], ARGV[1])
if not mine then
  return 0
end
redis.call('zrem', KEYS[1], ARGV[1])
-- Waiters sleep until the last deadline that blocks them. Wake them only if it is earlier now.
if tonumber(mine) > math.max(last(KEYS[1]), last(KEYS[2])) then
  redis.pcall('publish', KEYS[3], '0')
end
return 1
