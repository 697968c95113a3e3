-- KEYS[1] stock  KEYS[2] outbox  KEYS[3] set of products with sales in their outbox
-- ARGV[1] product  ARGV[2] load and ARGV[3] number of the last sale in MySQL  -> entries left
local stock = redis.call('hmget', KEYS[1], 'load', 'sale')
local load, sale = tonumber(ARGV[2]), tonumber(ARGV[3])
-- MySQL has sales that Redis lacks, because a replica without these sales became the master. New
-- sales would get the ids of those sales, and would never be subtracted in MySQL.
if stock[1] and (stock[1] + 0 < load or stock[1] + 0 == load and (stock[2] or 0) + 0 < sale) then
  redis.call('del', KEYS[1], KEYS[2])
elseif stock[1] and stock[1] + 0 == load then
  redis.pcall('hset', KEYS[1], 'carried', ARGV[3]) -- without memory, the rest is still useful
end
redis.call('xtrim', KEYS[2], 'minid', ARGV[2] .. '-' .. string.format('%.0f', sale + 1))
local entries = redis.call('xlen', KEYS[2])
if entries == 0 then
  redis.call('srem', KEYS[3], ARGV[1])
end
return entries
