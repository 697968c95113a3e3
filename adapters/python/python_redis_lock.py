"""The Lock of python-redis-lock on one Redis, with its renewal by a thread."""

import math
import os

import redis
import redis_lock
from adapter import LEASE, in_parts, serve

# Without time-outs, a command on a cut connection would never end. A waiting BLPOP takes 1 s.
client = redis.StrictRedis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"), socket_timeout=2, socket_connect_timeout=1
)


class Lock:
    def __init__(self, r):
        # expire and timeout are whole seconds.
        expire = math.ceil(r["lease_ms"] / 1000 if "lease_ms" in r else LEASE)
        self.lock = redis_lock.Lock(client, r["key"], expire=expire, auto_renewal=not r.get("no_renew"))

    def acquire(self, wait, cancelled):
        def attempt(seconds):
            return self.lock.acquire(timeout=1) if seconds > 0 else self.lock.acquire(blocking=False)

        return in_parts(wait, cancelled, 1, attempt)

    def release(self):
        try:
            self.lock.release()
            return True
        except redis_lock.NotAcquired:
            return False


serve(
    {
        "library": "python-redis-lock",
        "version": redis_lock.__version__,
        "document": "https://python-redis-lock.readthedocs.io/en/stable/readme.html",
        "backends": ["redis"],
        "capabilities": {"lease": True, "lease_per_request": True, "renewal": True},
    },
    Lock,
    lambda key: client.delete("lock:" + key),
)
