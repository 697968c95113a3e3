-- KEYS[1] latch  KEYS[2] channel  KEYS[3] set of all latches  -> the remaining count
if redis.call('exists', KEYS[1]) == 0 then
  return 0
end
local left = redis.call('hincrby', KEYS[1], 'left', -1)
if left > 0 then
  return left
end
redis.call('del', KEYS[1])
redis.call('srem', KEYS[3], KEYS[1])
redis.pcall('publish', KEYS[2], '0')
return 0
