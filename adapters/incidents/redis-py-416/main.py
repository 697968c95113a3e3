"""Shows https://github.com/redis/redis-py/issues/416 on the Redis of REDIS_URL.

Two threads share one Lock object. The lease of the first thread expires, and the second thread
acquires the lock. Then the first thread releases. It exits with 1 if this frees the second's lock.
"""
import os
import sys
import threading

import redis

client = redis.StrictRedis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
key = "incident:redis-py-416"
client.delete(key)
lock = client.lock(key, timeout=1)  # seconds
lock.acquire()
waiter = threading.Thread(target=lock.acquire, daemon=True)
waiter.start()
waiter.join(30)
if waiter.is_alive():
    print("the second thread did not acquire the lock within 30 s")
    sys.exit(2)
try:
    lock.release()
    answer = "succeeded"
except redis.exceptions.LockError as e:
    answer = "failed: %s" % e
held = client.exists(key)
client.delete(key)
print("redis-py %s: the release after the lease %s; the second thread's key %s." % (
    redis.__version__, answer, "is still there" if held else "was deleted"))
sys.exit(0 if held else 1)
