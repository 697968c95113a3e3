-- KEYS[1] lock  ARGV[1] thread number  -> 1 released, 0 not held by this number
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('del', KEYS[1])
