#!/usr/bin/env python3
"""A lock in Redis behind the protocol of docs/adapter.md, with the standard library only."""
import json, os, socket, sys, threading, time, urllib.parse, uuid

OURS = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call(%s) end return 0"
RELEASE, RENEW = OURS % "'del',KEYS[1]", OURS % "'pexpire',KEYS[1],ARGV[2]"
LEASE = int(os.environ.get("LEASE_MS", "10000"))
URL = urllib.parse.urlparse(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
writing, locks = threading.Lock(), {}  # by the id of the acquire


def say(line):
    with writing:
        print(json.dumps(line), flush=True)


def redis(*command):  # on a new connection, which is never used again after a lost answer
    commands = [command] if not URL.password else [("AUTH", URL.username or "default", URL.password), command]
    with socket.create_connection((URL.hostname, URL.port or 6379), 1) as server, server.makefile("rb") as answers:
        for words in commands:
            words = [str(word).encode() for word in words]
            server.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            line = answers.readline().strip().decode()
            if not line or line[0] == "-":
                raise OSError(line or "redis closed the connection")
        return line  # +OK, $-1 for nil, or :1 for a number


class Lock:
    def __init__(self, r):
        self.id, self.name, self.token = r["id"], "lock:" + r["key"], str(uuid.uuid4())
        self.lease, self.renews = r.get("lease_ms") or LEASE, not r.get("no_renew")
        self.until, self.lost, self.over = 0, "", threading.Event()  # over: cancelled or released

    def extend(self, *command):  # the lease counts from the sending, less 2 % because clocks differ
        sent = time.monotonic()
        if redis(*command) in ("+OK", ":1"):
            self.until = sent + self.lease * 0.98 / 1000
            return True

    def held(self):
        return not self.lost and time.monotonic() < self.until

    def acquire(self, wait_ms):
        end = time.monotonic() + wait_ms / 1000
        try:
            while not self.extend("SET", self.name, self.token, "NX", "PX", self.lease):
                if time.monotonic() >= end or self.over.wait(0.02):
                    return False
        except OSError:
            self.release()  # the answer may be lost, and the key taken
            raise
        threading.Thread(target=self.watch, daemon=True).start()
        return True

    def release(self):
        self.over.set()
        return redis("EVAL", RELEASE, 1, self.name, self.token) == ":1" and not self.lost

    def watch(self):  # renews the lease until the release, and sends lost when it has ended
        while self.held() and not self.over.wait(max(0, min(self.lease / 3000, self.until - time.monotonic()))):
            try:
                if self.renews and not self.extend("EVAL", RENEW, 1, self.name, self.token, self.lease):
                    self.lost = "the key was deleted, or has another value"
            except OSError:
                time.sleep(0.1)  # the next try may have an answer
        if not self.over.is_set():
            say({"id": self.id, "answer": "lost", "why": self.lost or "the lease has ended"})


def serve(r):
    try:
        if r["do"] == "acquire":
            answer = "granted" if locks[r["id"]].acquire(r.get("wait_ms", 0)) else "not_acquired"
        elif r["do"] == "release":
            answer = "released" if locks.pop(r["of"]).release() else "not_held"
        elif r["do"] == "verify":
            answer = "held" if locks[r["of"]].held() else "not_held"
        else:
            answer = redis("DEL", "lock:" + r["key"]) and "done"  # clear
        line = {"id": r["id"], "answer": answer}
    except OSError as why:
        line = {"id": r["id"], "answer": "error", "backend": "redis", "why": str(why) or "no answer"}
    if r["do"] == "acquire" and line["answer"] != "granted":
        del locks[r["id"]]
    say(line)


say(json.loads("""{"hello": 1, "library": "lock.py", "version": "1", "language": "Python", "backends": ["redis"],
 "capabilities": {"lease": true, "lease_per_request": true, "renewal": true, "loss_notice": true},
 "protects": ["crash", "overrun", "cutoff", "lost-reply"], "breaks": [{"hazard": "pause"},
 {"hazard": "failover"}, {"hazard": "clock-jump"}, {"hazard": "nesting"}, {"hazard": "polling"}]}"""))
for request in map(json.loads, sys.stdin):
    if request["do"] == "acquire":
        locks[request["id"]] = Lock(request)
    if request["do"] != "cancel":
        threading.Thread(target=serve, args=(request,), daemon=True).start()
    elif request["of"] in locks:
        locks[request["of"]].over.set()
