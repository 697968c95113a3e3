-- KEYS[1] latch  KEYS[2] set of all latches  ARGV[1] count  ARGV[2] new id
-- ARGV[3] maximum number of latches  -> 1 set, 0 the latch has a count, -1 too many latches
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
if redis.call('scard', KEYS[2]) >= tonumber(ARGV[3]) then
  return -1
end
redis.call('hset', KEYS[1], 'left', ARGV[1], 'id', ARGV[2])
redis.call('sadd', KEYS[2], KEYS[1])
return 1
