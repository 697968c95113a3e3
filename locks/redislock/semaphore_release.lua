-- KEYS permits taken, total, channel  ARGV[1] token  ARGV[2] how many  -> 1 released, 0 not held
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
local released = 0
for i = 1, tonumber(ARGV[2]) do
  released = released + redis.call('zrem', KEYS[1], ARGV[1] .. ':' .. i)
end
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('del', KEYS[2])
end
if released == 0 then
  return 0
end
redis.pcall('publish', KEYS[3], '0')
return 1
