-- KEYS[1] lock  KEYS[2] fence counter  KEYS[3] queue  KEYS[4] deadlines
-- ARGV[1] token  ARGV[2] lease in ms  ARGV[3] life of a waiter in ms, 0: do not queue
-- -> {1, fence, 0} granted, {0, ms until the lock may be free (-1: no expiry), waiters before us}
local lock, fence, queue, deadlines, me = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
-- The lock has our own token: the answer to an earlier try was lost.
if redis.call('hexists', lock, me) == 1 then
  redis.call('pexpire', lock, ARGV[2])
  return {1, tonumber(redis.call('get', fence)), 0}
end
local first = head(queue, deadlines, me)
-- A free lock is for the first waiter, even if a request of another waiter arrives earlier.
if redis.call('exists', lock) == 0 and (not first or first == me) then
  redis.call('zrem', queue, me)
  redis.call('hdel', deadlines, me)
  redis.call('hset', lock, me, 1)
  redis.call('pexpire', lock, ARGV[2])
  return {1, redis.call('incr', fence), 0}
end
local busy = redis.call('pttl', lock)
if ARGV[3] == '0' then
  return {0, busy, 0}
end
if not redis.call('zscore', queue, me) then
  local last = redis.call('zrange', queue, -1, -1, 'withscores')
  redis.call('zadd', queue, (tonumber(last[2]) or 0) + 1, me)
end
redis.call('hset', deadlines, me, string.format('%.0f', now() + ARGV[3]))
-- If a queue is not refreshed for the life of a waiter, it has no living waiters.
redis.call('pexpire', queue, ARGV[3])
redis.call('pexpire', deadlines, ARGV[3])
return {0, busy, redis.call('zrank', queue, me)}
