"""The Lock of sherlock on one Redis. With the argument no-expire, it never expires, as in the first
example of its documentation. Otherwise the holder renews it only by calls of renew.
"""

import math
import os
import sys
from importlib.metadata import version

import redis
import sherlock
from adapter import LEASE, in_parts, serve

EXPIRES = sys.argv[1:] != ["no-expire"]
# Without time-outs, a command on a cut connection would never end.
client = redis.StrictRedis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"), socket_timeout=1, socket_connect_timeout=1
)
sherlock.configure(backend=sherlock.backends.REDIS, client=client, expire=None, retry_interval=0.1)


class Lock:
    def __init__(self, r):
        self.key, self.options = r["key"], {}
        if EXPIRES:  # in whole seconds: Redis rejects others
            self.options["expire"] = math.ceil(r["lease_ms"] / 1000 if "lease_ms" in r else LEASE)

    def acquire(self, wait, cancelled):
        return in_parts(wait, cancelled, 0.5, self.attempt)

    def attempt(self, seconds):
        self.lock = sherlock.Lock(self.key, timeout=seconds, **self.options)
        try:
            return self.lock.acquire(blocking=seconds > 0)
        except sherlock.LockTimeoutException:
            return False

    def release(self):
        try:
            self.lock.release()
            return True
        except sherlock.LockException:
            return False


serve(
    {
        "library": "sherlock" if EXPIRES else "sherlock without expiry",
        "version": version("sherlock"),
        "document": "https://sher-lock.readthedocs.io/en/latest/",
        "backends": ["redis"],
        "capabilities": {"lease": True, "lease_per_request": True} if EXPIRES else {},
    },
    Lock,
    client.delete,
)
