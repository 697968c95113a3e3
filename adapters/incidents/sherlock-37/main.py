"""Shows https://github.com/py-sherlock/sherlock/pull/37 on the Redis of REDIS_URL.

One Lock without expiry is acquired, and then another one of the same name. It exits with 1 if both
are acquired.
"""
import os
import sys
from importlib.metadata import version

import redis
import sherlock

client = redis.StrictRedis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
key = "incident:sherlock-37"
client.delete(key)
sherlock.configure(backend=sherlock.backends.REDIS, client=client, expire=None)
first, second = sherlock.Lock(key), sherlock.Lock(key)
if not first.acquire(False):
    print("the first lock was not acquired")
    sys.exit(2)
stored, both = client.exists(key), second.acquire(False)
client.delete(key)
print("sherlock %s: after the first acquire, the key %s; a second lock of the same name %s." % (
    version("sherlock"), "exists" if stored else "does not exist", "was acquired too" if both else "was refused"))
sys.exit(1 if both else 0)
