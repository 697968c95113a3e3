-- KEYS[1] lock  ARGV[1] owner  ARGV[2] name of this grant
-- -> 1 released, 0 the owner has more grants, -1 not held, or released before
if redis.call('hdel', KEYS[1], ARGV[2]) == 0 then
  return -1
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  return 0
end
redis.call('del', KEYS[1])
return 1
