-- KEYS[1] fence counter  ARGV[1] fence  -> 1 stored, 0 this fence or a higher one was stored before
if tonumber(redis.call('get', KEYS[1]) or '0') >= tonumber(ARGV[1]) then
  return 0
end
redis.call('set', KEYS[1], ARGV[1])
return 1
