-- KEYS[1] permits taken  KEYS[2] total  ARGV[1] token  ARGV[2] lease in ms  ARGV[3] permits held
-- -> 1 renewed, 0 not held
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- All permits of a token have one deadline. After this deadline the permits are free.
if tonumber(redis.call('zscore', KEYS[1], ARGV[1] .. ':1') or now) <= now then
  return 0
end
for i = 1, tonumber(ARGV[3]) do
  redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1] .. ':' .. i)
end
local last = tonumber(redis.call('zrange', KEYS[1], -1, -1, 'withscores')[2])
redis.call('pexpireat', KEYS[1], last)
redis.call('pexpireat', KEYS[2], last)
return 1
