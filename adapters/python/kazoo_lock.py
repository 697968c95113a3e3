"""The Lock recipe of kazoo on ZooKeeper. A listener for the state of the session notices a loss."""

import os
import threading

import kazoo
from adapter import lose, serve
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import CancelledError, LockTimeout

SESSION = int(os.environ.get("SESSION_MS", "10000")) / 1000  # in seconds
client = KazooClient(hosts=os.environ.get("ZK_SERVERS", "127.0.0.1:2181"), timeout=SESSION)
starting, started, holders = threading.Lock(), threading.Event(), set()
steady = threading.Event()  # the session is neither suspended nor lost


@client.add_listener
def state_changed(state):
    """Follow the documentation: a holder pauses while suspended, and has no lock after lost."""
    if state == KazooState.CONNECTED:
        steady.set()
        return
    steady.clear()
    if state == KazooState.LOST:
        for lock in list(holders):
            lock.lost = True
            # The listener must not block, and has no time for a slow reader.
            threading.Thread(target=lose, args=(lock, "the session was lost"), daemon=True).start()


def connect():
    with starting:
        if not started.is_set():
            client.start(timeout=SESSION)  # later it connects again by itself
            started.set()


class Lock:
    def __init__(self, r):
        connect()
        self.lost, self.lock = False, client.Lock("/kazoo/" + r["key"], str(r["id"]))

    def acquire(self, wait, cancelled):
        done = threading.Event()
        threading.Thread(target=self.cancel, args=(cancelled, done), daemon=True).start()
        try:
            granted = self.lock.acquire(blocking=wait > 0, timeout=wait or None)
        except (LockTimeout, CancelledError):
            return False
        finally:
            done.set()
        if granted:
            holders.add(self)
        return granted

    def cancel(self, cancelled, done):
        while not done.is_set():
            if cancelled.wait(0.1):
                self.lock.cancel()
                return

    def held(self):
        return steady.wait(SESSION) and not self.lost

    def release(self):
        holders.discard(self)
        return self.lock.release() and not self.lost


def clear(key):
    connect()
    client.delete("/kazoo/" + key, recursive=True)


serve(
    {
        "library": "kazoo",
        "version": kazoo.__version__,
        "document": "https://kazoo.readthedocs.io/en/latest/api/recipe/lock.html",
        "backends": ["zookeeper"],
        "capabilities": {"lease": True, "renewal": True, "loss_notice": True},
    },
    Lock,
    clear,
)
