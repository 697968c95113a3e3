-- KEYS[1] readers or writers  ARGV[1] token  ARGV[2] lease in ms  -> 1 renewed, 0 not held
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- After its deadline a token is invalid, even if it is still in the set.
if tonumber(redis.call('zscore', KEYS[1], ARGV[1]) or now) <= now then
  return 0
end
redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('pexpireat', KEYS[1], tonumber(redis.call('zrange', KEYS[1], -1, -1, 'withscores')[2]))
return 1
