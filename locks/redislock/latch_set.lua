-- KEYS[1] latch  ARGV[1] count  ARGV[2] name of this setting  -> 1 set, 0 one is counting
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('hset', KEYS[1], 'left', ARGV[1], 'id', ARGV[2])
return 1
