-- KEYS[1] stock  ARGV[1] count  ARGV[2] number of this load
-- -> 1 loaded, 0 a count existed already, or a reset came after this load
local stock = redis.call('hmget', KEYS[1], 'count', 'load')
if stock[1] or tonumber(stock[2] or '0') >= tonumber(ARGV[2]) then
  return 0
end
redis.call('hset', KEYS[1], 'count', ARGV[1], 'load', ARGV[2], 'sale', 0, 'carried', 0)
redis.call('persist', KEYS[1])
return 1
