-- KEYS[1] lock  ARGV[1] token  -> 1 released, 0 not held
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('del', KEYS[1])
