"""The protocol of docs/adapter.md for locks of Python libraries.

Each request runs in a thread of its own. A library is a function that makes the lock of one
acquire. The lock has the methods acquire(wait, cancelled), release() and, with loss_notice, held().
acquire and release return False if the lock was not acquired, or not held any more.
"""

import json
import os
import sys
import threading
import time

LEASE = int(os.environ.get("LEASE_MS", "10000")) / 1000  # in seconds
REQUESTS = {"acquire", "release", "verify", "clear"}
_writing, _locks = threading.Lock(), {}  # the acquires that wait or hold their lock, by id


class _Use:
    """An acquire that waits for its lock, or holds it."""

    def __init__(self):
        self.lock, self.cancelled = None, threading.Event()


def _say(line):
    with _writing:
        print(json.dumps(line), flush=True)


def lose(lock, why):
    """Send that the holder of this lock has lost it."""
    for id, use in list(_locks.items()):
        if use.lock is lock:
            _say({"id": id, "answer": "lost", "why": why})


def in_parts(wait, cancelled, part, attempt):
    """Call attempt with at most part seconds, until it acquires the lock, the wait is over or was
    cancelled: most libraries cannot cancel a wait. With a wait of 0 it calls attempt(0) once.
    """
    end = time.monotonic() + wait
    while not attempt(min(part, max(0, end - time.monotonic()))):
        if time.monotonic() >= end or cancelled.is_set():
            return False
    return True


def _carry_out(r, new_lock, clear):
    if r["do"] == "clear":
        clear(r["key"])
        return "done"
    if r["do"] == "acquire":
        use = _locks[r["id"]]
        use.lock = new_lock(r)
        return "granted" if use.lock.acquire(r.get("wait_ms", 0) / 1000, use.cancelled) else "not_acquired"
    use = _locks.get(r["of"])
    if use is None:
        return "not_held"
    if r["do"] == "verify":
        return "held" if use.lock.held() else "not_held"
    _locks.pop(r["of"])
    return "released" if use.lock.release() else "not_held"


def _answer(r, backend, new_lock, clear):
    line = {"id": r["id"]}
    try:
        line["answer"] = _carry_out(r, new_lock, clear)
    except Exception as why:  # of the library, or of its client
        line.update(answer="error", backend=backend, why=f"{type(why).__name__}: {why}")
    if r["do"] == "acquire" and line["answer"] != "granted":
        _locks.pop(r["id"])
    _say(line)


def serve(hello, new_lock, clear):
    """Send the hello, and answer the requests until the end of the input."""
    _say({"hello": 1, "language": "Python", **hello})
    for n, text in enumerate(sys.stdin, 1):
        try:
            r = json.loads(text)
            if r["do"] == "cancel":
                if r["of"] in _locks:
                    _locks[r["of"]].cancelled.set()
                continue
            if r["do"] not in REQUESTS:
                raise ValueError(f"unknown request {r['do']!r}")
            if r["do"] == "acquire":
                _locks[r["id"]] = _Use()
            threading.Thread(target=_answer, args=(r, hello["backends"][0], new_lock, clear), daemon=True).start()
        except (ValueError, KeyError, TypeError) as why:
            sys.exit(f"line {n}: {type(why).__name__}: {why}")
