-- KEYS[1] lock  KEYS[2] queue  KEYS[3] deadlines  ARGV[1] prefix of the waiters' channels
-- ARGV[2] life of a waiter in ms  ARGV[3...] tokens of living waiters
-- -> the tokens that are not in the queue. The script wakes the first waiter if the lock is free.
local gone, deadline = {}, string.format('%.0f', now() + ARGV[2])
for i = 3, #ARGV do
  if redis.call('zscore', KEYS[2], ARGV[i]) then
    redis.call('hset', KEYS[3], ARGV[i], deadline)
  else
    table.insert(gone, ARGV[i])
  end
end
redis.call('pexpire', KEYS[2], ARGV[2])
redis.call('pexpire', KEYS[3], ARGV[2])
if redis.call('exists', KEYS[1]) == 0 then
  local first = head(KEYS[2], KEYS[3])
  if first then
    redis.pcall('publish', ARGV[1] .. first, '0')
  end
end
return gone
