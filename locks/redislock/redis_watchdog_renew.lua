-- KEYS[1] lock  ARGV[1] owner  ARGV[2] lease in ms  -> 1 renewed, 0 not held
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
-- An outer grant may have a longer lease, so never shorten the remaining lease.
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return 1
