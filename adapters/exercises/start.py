#!/usr/bin/env python3
"""The starting file of the exercises in docs/exercises. Write your lock at the four TODOs.

The rest speaks the protocol of docs/adapter.md: each request runs in a thread of its own."""
import json, os, socket, sys, threading, urllib.parse

LEASE_MS = int(os.environ.get("LEASE_MS", "10000"))
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
REDLOCK_URLS = os.environ.get("REDLOCK_URLS", REDIS_URL).split(",")  # five servers, for exercise 9
writing, locks = threading.Lock(), {}  # the locks by the id of their acquire

# TODO 1: add the capability that an exercise needs, such as "reentry": True.
HELLO = {"hello": 1, "library": "my-lock", "version": "1", "language": "Python", "backends": ["redis"],
         "capabilities": {"lease": True, "lease_per_request": True}}


class Lock:
    """One acquire, and what belongs to it. Write your own fields into __init__."""

    def __init__(self, request):
        self.id, self.key, self.owner = request["id"], "lock:" + request["key"], request["owner"]
        self.lease_ms = request.get("lease_ms") or LEASE_MS
        self.renews, self.fence = not request.get("no_renew"), 0
        self.cancelled = threading.Event()  # wait with self.cancelled.wait(seconds)

    def acquire(self, wait_ms):
        """TODO 2: return True if the lock was acquired, and False after wait_ms or when cancelled."""
        raise OSError("acquire is not written yet")

    def release(self):
        """TODO 3: return True if the lock was released, and False if it was not held any more."""
        raise OSError("release is not written yet")

    def held(self):
        """TODO 4: return True if the lock is still held (only for the capability loss_notice).
        When the lock is lost, call say({"id": self.id, "answer": "lost"}) without being asked."""
        raise OSError("held is not written yet")


def redis(*command, url=REDIS_URL):
    """Send one command and return its answer: a text, a number, a list, or None. An error raises OSError."""
    at = urllib.parse.urlparse(url)
    with socket.create_connection((at.hostname, at.port or 6379), 5) as server, server.makefile("rb") as answers:
        if at.password:
            send(server, answers, ("AUTH", at.username or "default", at.password))
        return send(server, answers, command)


def send(server, answers, command):
    words = [str(word).encode() for word in command]
    server.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    return read(answers)


def read(answers):
    line = answers.readline().strip().decode()
    if not line or line[0] == "-":
        raise OSError(line or "redis closed the connection")
    kind, rest = line[0], line[1:]
    if kind == "$":
        return None if rest == "-1" else answers.read(int(rest) + 2)[:-2].decode()
    if kind == "*":
        return None if rest == "-1" else [read(answers) for _ in range(int(rest))]
    return int(rest) if kind == ":" else rest


def say(line):
    with writing:
        print(json.dumps(line), flush=True)


def serve(request):
    lock, line = locks.get(request.get("of") or request["id"]), {"id": request["id"]}
    try:
        if request["do"] == "acquire":
            line["answer"] = "granted" if lock.acquire(request.get("wait_ms", 0)) else "not_acquired"
            if lock.fence and line["answer"] == "granted":
                line["fence"] = lock.fence
        elif request["do"] == "release":
            line["answer"] = "released" if lock.release() else "not_held"
        elif request["do"] == "verify":
            line["answer"] = "held" if lock.held() else "not_held"
        else:  # clear: delete the data of the key. Add the names of your other keys.
            redis("DEL", "lock:" + request["key"])
            line["answer"] = "done"
    except OSError as why:
        line.update(answer="error", backend="redis", why=str(why) or "no answer")
    say(line)


if __name__ == "__main__":
    say(HELLO)
    for request in map(json.loads, sys.stdin):
        if request["do"] == "acquire":
            locks[request["id"]] = Lock(request)
        if request["do"] != "cancel":
            threading.Thread(target=serve, args=(request,), daemon=True).start()
        elif request["of"] in locks:
            locks[request["of"]].cancelled.set()
