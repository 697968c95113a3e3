-- KEYS[1] lock  KEYS[2] queue  KEYS[3] deadlines  ARGV[1] token  ARGV[2] prefix of the waiters' channels
-- -> 1 released, 0 not ours. Leaves the queue as well, and wakes the next if the lock is free.
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('hdel', KEYS[3], ARGV[1])
local released = redis.call('hdel', KEYS[1], ARGV[1])
if redis.call('exists', KEYS[1]) == 0 then
  local next = head(KEYS[2], KEYS[3])
  if next then
    redis.call('publish', ARGV[2] .. next, '0')
  end
end
return released
