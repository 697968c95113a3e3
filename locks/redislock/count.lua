-- KEYS[1] lock  ARGV[1] token  ARGV[2] acquisitions not yet released  -> 1 stored, 0 not held
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
return 1
