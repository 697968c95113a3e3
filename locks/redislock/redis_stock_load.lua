-- KEYS[1] stock  ARGV[1] count  ARGV[2] number of this load  -> 1 loaded, 0 a count existed already
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('hset', KEYS[1], 'count', ARGV[1], 'load', ARGV[2], 'sale', 0)
return 1
