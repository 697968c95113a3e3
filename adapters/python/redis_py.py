"""The Lock of redis-py on one Redis. The holder renews it only by calls of extend."""

import os

import redis
from adapter import LEASE, in_parts, serve

# Without time-outs, a command on a cut connection would never end. All else is the default.
client = redis.Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"), socket_timeout=1, socket_connect_timeout=1
)


class Lock:
    def __init__(self, r):
        lease = r["lease_ms"] / 1000 if "lease_ms" in r else LEASE
        # Another thread releases the lock. The documentation has thread_local=False for this.
        self.lock = client.lock("lock:" + r["key"], timeout=lease, thread_local=False)

    def acquire(self, wait, cancelled):
        def attempt(seconds):
            return self.lock.acquire(blocking=seconds > 0, blocking_timeout=seconds)

        return in_parts(wait, cancelled, 0.5, attempt)

    def release(self):
        try:
            self.lock.release()
            return True
        except redis.exceptions.LockNotOwnedError:
            return False


serve(
    {
        "library": "redis-py",
        "version": redis.__version__,
        "document": "https://redis.readthedocs.io/en/stable/lock.html",
        "backends": ["redis"],
        "capabilities": {"lease": True, "lease_per_request": True},
    },
    Lock,
    lambda key: client.delete("lock:" + key),
)
