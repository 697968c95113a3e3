-- KEYS[1] permits taken  KEYS[2] total  ARGV[1] token  ARGV[2] lease in ms  ARGV[3] total
-- ARGV[4] permits wanted  -> {1, 0} granted, {0, ms until they may be free}, {-1, the total in use}
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
local taken = redis.call('zcard', KEYS[1])
if taken == 0 then
  redis.call('del', KEYS[2])
end
local total = redis.call('get', KEYS[2]) or ARGV[3]
if total ~= ARGV[3] then
  return {-1, tonumber(total)}
end
local lacking = taken + ARGV[4] - total
if lacking > 0 then
  -- The deadlines are sorted. When the deadline at this index has passed, enough permits are free.
  local free = redis.call('zrange', KEYS[1], lacking - 1, lacking - 1, 'withscores')[2]
  return {0, free - now}
end
for i = 1, tonumber(ARGV[4]) do
  redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1] .. ':' .. i)
end
local last = tonumber(redis.call('zrange', KEYS[1], -1, -1, 'withscores')[2])
redis.call('pexpireat', KEYS[1], last)
redis.call('set', KEYS[2], total)
redis.call('pexpireat', KEYS[2], last)
return {1, 0}
