-- KEYS[1] lock  KEYS[2] counter  ARGV[1] token  ARGV[2] floor  -> fence above floor, 0 not held
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local fence = math.max(tonumber(redis.call('get', KEYS[2]) or '0'), tonumber(ARGV[2])) + 1
redis.call('set', KEYS[2], string.format('%.0f', fence))
return fence
