-- evicts returns an error if this Redis may delete keys that never expire, such as a stock, an outbox or a fence.
-- The policies volatile-* delete only keys that expire. Without maxmemory, Redis deletes none.
local function evicts()
  local info = redis.pcall('info', 'memory')
  if type(info) ~= 'string' then -- the user may not send INFO
    return nil
  end
  local policy = string.match(info, 'maxmemory_policy:(allkeys%S*)')
  if not policy or string.match(info, 'maxmemory:(%d+)') == '0' then
    return nil
  end
  return redis.error_reply('EVICTS its maxmemory-policy ' .. policy .. ' may delete stock, sales and fences: set it to noeviction')
end
