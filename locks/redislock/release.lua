-- KEYS[1] lock  KEYS[2] channel  ARGV[1] token  -> 0 not held, else 1 + number of notified processes
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('del', KEYS[1])
local notified = redis.pcall('publish', KEYS[2], '0')
return 1 + (tonumber(notified) or 0)
