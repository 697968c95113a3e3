-- KEYS[1] stock  KEYS[2] outbox  KEYS[3] set of products with sales in their outbox
-- ARGV[1] product  ARGV[2] load of the reset  -> 1 cleared, 0 the count was loaded after the reset
if tonumber(redis.call('hget', KEYS[1], 'load') or '0') > tonumber(ARGV[2]) then
  return 0
end
redis.call('del', KEYS[1], KEYS[2])
redis.call('srem', KEYS[3], ARGV[1])
redis.call('hset', KEYS[1], 'load', ARGV[2])
redis.call('expire', KEYS[1], 60)
return 1
