-- KEYS[1] lock  KEYS[2] channel  ARGV[1] token  -> -1 not ours, else how many were told
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return -1
end
redis.call('del', KEYS[1])
return redis.call('publish', KEYS[2], '0')
