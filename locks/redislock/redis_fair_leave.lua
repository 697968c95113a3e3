-- KEYS[1] lock  KEYS[2] queue  KEYS[3] deadlines  ARGV[1] token  ARGV[2] prefix of channels
-- -> 1 released, 0 not held. It also leaves the queue, and wakes the next waiter of a free lock.
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('hdel', KEYS[3], ARGV[1])
local released = redis.call('hdel', KEYS[1], ARGV[1])
if redis.call('exists', KEYS[1]) == 0 then
  local next = head(KEYS[2], KEYS[3])
  if next then
    redis.pcall('publish', ARGV[2] .. next, '0')
  end
end
return released
