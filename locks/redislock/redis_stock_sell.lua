-- KEYS[1] stock  KEYS[2] outbox  KEYS[3] set of products with sales in their outbox
-- ARGV[1] pieces  ARGV[2] product  ARGV[3] order
-- -> {1, left} sold, {0, left} too few pieces left, {-1, 0} count not loaded
local stock = redis.call('hmget', KEYS[1], 'count', 'load', 'sale', 'checked', 'carried')
if not stock[1] then
  return {-1, 0}
end
-- The policy may change at any time. INFO costs as much as the rest of a sale, so it is sent once in 10 ms.
local time = redis.call('time')
local now = time[1] .. string.sub(string.format('%06d', time[2]), 1, 2)
if stock[4] ~= now then
  local refusal = evicts()
  if refusal then
    return refusal
  end
  redis.call('hset', KEYS[1], 'checked', now)
end
local missing = stock[3] - (stock[5] or 0)
if missing > 0 and redis.call('exists', KEYS[2]) == 0 then
  return redis.error_reply('OUTBOX ' .. KEYS[2] .. ' was deleted with ' .. missing ..
    ' sales that are not in MySQL: set the count of the row to ' .. stock[1] .. ', then delete ' .. KEYS[1])
end
local left = stock[1] - ARGV[1]
if left < 0 then
  return {0, tonumber(stock[1])}
end
-- The id does not come from a clock: MySQL counts the loads, and each load counts its sales. So a
-- later sale has a higher id. XADD goes first: if it is rejected, the script has written no data.
local sale = stock[3] + 1
redis.call('xadd', KEYS[2], stock[2] .. '-' .. sale, 'order', ARGV[3], 'qty', ARGV[1])
redis.call('hset', KEYS[1], 'count', left, 'sale', sale)
redis.call('sadd', KEYS[3], ARGV[2])
return {1, left}
