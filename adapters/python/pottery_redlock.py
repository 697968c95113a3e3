"""The Redlock of pottery on one Redis, or on the servers of REDLOCK_URLS with the argument 5. The
holder renews it only by calls of extend.
"""

import os
import sys
from importlib.metadata import version

import redis
from adapter import LEASE, in_parts, serve
from pottery import Redlock, ReleaseUnlockedLock

FIVE = sys.argv[1:] == ["5"]
urls = os.environ.get("REDLOCK_URLS" if FIVE else "REDIS_URL", "redis://127.0.0.1:6379/0").split(",")
# Without time-outs, a command on a cut connection would never end.
masters = {redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) for url in urls}


class Lock:
    def __init__(self, r):
        lease = r["lease_ms"] / 1000 if "lease_ms" in r else LEASE
        # Otherwise, acquire would return False when the servers are away.
        self.lock = Redlock(key=r["key"], masters=masters, raise_on_redis_errors=True, auto_release_time=lease)

    def acquire(self, wait, cancelled):
        def attempt(seconds):
            return self.lock.acquire(timeout=seconds) if seconds > 0 else self.lock.acquire(blocking=False)

        return in_parts(wait, cancelled, 0.5, attempt)

    def release(self):
        try:
            self.lock.release()
            return True
        except ReleaseUnlockedLock:
            return False


def clear(key):
    for master in masters:
        master.delete("redlock:" + key)


serve(
    {
        "library": "pottery Redlock",
        "version": version("pottery"),
        "document": "https://github.com/brainix/pottery#redlock",
        "backends": ["redlock" if FIVE else "redis"],
        "capabilities": {"lease": True, "lease_per_request": True},
    },
    Lock,
    clear,
)
