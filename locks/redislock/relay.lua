-- KEYS[1] lock  KEYS[2] fence counter  ARGV[1] token  ARGV[2] the next holder's  ARGV[3] its lease in ms
-- ARGV[4] ms that the counter lives after this grant, left out: for good
-- -> its fence, 0 not ours to hand on
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('del', KEYS[1])
redis.call('hset', KEYS[1], ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[3])
local fence = redis.call('incr', KEYS[2])
if ARGV[4] then
  redis.call('pexpire', KEYS[2], ARGV[4])
end
return fence
