-- KEYS[1] lock  ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] grant's name  -> 1 granted, 0 not free
if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('hset', KEYS[1], ARGV[3], 1)
-- An outer grant may have a longer lease, so never shorten the remaining lease.
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return 1
