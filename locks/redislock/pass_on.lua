-- KEYS[1] lock  KEYS[2] fence counter  ARGV[1] token  ARGV[2] token of the next holder  ARGV[3] lease in ms
-- -> fence of the next holder, 0 not held
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('del', KEYS[1])
redis.call('hset', KEYS[1], ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[3])
return redis.call('incr', KEYS[2])
