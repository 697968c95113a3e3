-- KEYS[1] lock  ARGV[1] owner  -> 1 released, 0 counted down, -1 not ours
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return -1
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  return 0
end
redis.call('del', KEYS[1])
return 1
