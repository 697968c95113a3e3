-- KEYS[1] lock  KEYS[2] fence counter  ARGV[1] token  ARGV[2] lease in ms
-- ARGV[3] life of the fence counter after this grant in ms, 0: for ever
-- -> {1, fence} granted, {0, ms until the lock may be free (a day if the lock never expires)}
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  local fence = redis.call('incr', KEYS[2])
  if tonumber(ARGV[3]) > 0 then
    redis.call('pexpire', KEYS[2], ARGV[3])
  end
  return {1, fence}
end
-- The key has our own token: the answer to an earlier try was lost.
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return {1, tonumber(redis.call('get', KEYS[2]) or '1')}
end
local left = redis.call('pttl', KEYS[1])
return {0, left < 0 and 86400000 or left}
