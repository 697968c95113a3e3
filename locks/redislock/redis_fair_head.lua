-- head returns the first waiter that is me or alive, or nil. It removes dead waiters before that.
local function now()
  local t = redis.call('time')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function head(queue, deadlines, me)
  while true do
    local first = redis.call('zrange', queue, 0, 0)[1]
    if not first or first == me then
      return first
    end
    if tonumber(redis.call('hget', deadlines, first) or '0') > now() then
      return first
    end
    redis.call('zrem', queue, first)
    redis.call('hdel', deadlines, first)
  end
end
