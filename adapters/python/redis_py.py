"""The Lock of redis-py on one Redis, behind Sentinel or in a cluster. The holder renews it only by calls of extend."""

import functools
import os
from urllib.parse import parse_qs, unquote, urlsplit

import redis
import redis.sentinel
from adapter import LEASE, in_parts, serve

# Without time-outs, a command on a cut connection would never end. All else is the default.
OPTIONS = {"socket_timeout": 1, "socket_connect_timeout": 1}


def login(text):
    """Return the user and the password in user:password@ or user:password."""
    user, _, password = text.rstrip("@").partition(":")
    return {"username": unquote(user) or None, "password": unquote(password) or None}


@functools.cache
def client():
    url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    u = urlsplit(url)
    user, _, hosts = u.netloc.rpartition("@")
    nodes = [tuple(host.rsplit(":", 1)) for host in hosts.split(",")]
    if u.scheme == "redis-cluster":
        all = [redis.cluster.ClusterNode(host, int(port)) for host, port in nodes]
        return redis.RedisCluster(startup_nodes=all, **login(user), **OPTIONS)
    if u.scheme == "redis-sentinel":
        of_sentinel = {**login(parse_qs(u.query).get("sentinel", [""])[0]), **OPTIONS}
        sentinel = redis.sentinel.Sentinel(nodes, sentinel_kwargs=of_sentinel, **login(user), **OPTIONS)
        return sentinel.master_for(u.path.strip("/"))
    return redis.Redis.from_url(url, **OPTIONS)


class Lock:
    def __init__(self, r):
        lease = r["lease_ms"] / 1000 if "lease_ms" in r else LEASE
        # Another thread releases the lock. The documentation has thread_local=False for this.
        self.lock = client().lock("lock:" + r["key"], timeout=lease, thread_local=False)

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
    lambda key: client().delete("lock:" + key),
)
