#!/usr/bin/env python3
"""A lock in Redis for the tests of the grader and the judge: lock.py FEATURES [FLAWS].

The features are capabilities of docs/adapter.md, wake (a release wakes one waiter), majority (three
of five Redis) and hashed (the name in Redis is a hash of the key). Without a flaw, the lock is right. A flaw is one mistake; the tests list them."""
import hashlib, json, os, socket, sys, threading, time, urllib.parse, uuid, zlib

FEATURES = sys.argv[1].split(",")
FLAWS = set(sys.argv[2].split(",")) if len(sys.argv) > 2 else set()
REENTRY, RENEWAL, NOTICE = "reentry" in FEATURES, "renewal" in FEATURES, "loss_notice" in FEATURES
FAIR, FENCE, WAKE, MAJORITY = "fairness" in FEATURES, "fence" in FEATURES, "wake" in FEATURES, "majority" in FEATURES
LEASE = int(os.environ.get("LEASE_MS", "10000"))
NODES = os.environ.get("REDLOCK_URLS" if MAJORITY else "REDIS_URL", "redis://127.0.0.1:6379/0").split(",")
QUORUM = len(NODES) // 2 + 1
if "two-of-five" in FLAWS:
    QUORUM = 2
if "first-node-only" in FLAWS:
    NODES, QUORUM = NODES[:1], 1
PROCESS, SKEW = str(uuid.uuid4()), 3600 * (os.getpid() % 2) if "client-clock" in FLAWS else 0
writing, locks, idle, local = threading.Lock(), {}, {node: [] for node in NODES}, {"fence": 0}

# KEYS: lock, queue, fence, wake-up   ARGV: id, lease, re-entry, fair, fence
ACQUIRE = """
if ARGV[3] == '1' and redis.call('hget', KEYS[1], 'id') == ARGV[1] then
  if tonumber(redis.call('hget', KEYS[1], 'count')) >= LIMIT then return 0 end
  redis.call('hincrby', KEYS[1], 'count', 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
if ARGV[4] == '1' then
  local t = redis.call('time')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)
  redis.call('hset', KEYS[2] .. ':seen', ARGV[1], now)
  if not redis.call('zscore', KEYS[2], ARGV[1]) then
    redis.call('zadd', KEYS[2], redis.call('incr', KEYS[2] .. ':last'), ARGV[1])
  end
  local first = redis.call('zrange', KEYS[2], 0, 0)[1]
  local opened = false
  while first ~= ARGV[1] and now - tonumber(redis.call('hget', KEYS[2] .. ':seen', first) or 0) > 1500 do
    redis.call('zrem', KEYS[2], first)
    redis.call('hdel', KEYS[2] .. ':seen', first)
    first = redis.call('zrange', KEYS[2], 0, 0)[1]
    opened = OPENS
  end
  if opened then redis.call('del', KEYS[1]) end
  if first ~= ARGV[1] then return 0 end
end
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hset', KEYS[1], 'id', ARGV[1], 'count', 1)
redis.call('pexpire', KEYS[1], ARGV[2])
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('hdel', KEYS[2] .. ':seen', ARGV[1])
if ARGV[5] == '1' then return 1 + redis.call('incr', KEYS[3]) end
return 1
""".replace("OPENS", "true" if "dead-waiter-unlocks" in FLAWS else "false").replace("1500", "900000" if FLAWS & {"keeps-the-dead", "keeps-the-cancelled"} else "1500").replace("LIMIT", "2" if "re-enters-once" in FLAWS else "1e9")
RELEASE = """
if redis.call('hget', KEYS[1], 'id') ~= ARGV[1] then return 0 end
if redis.call('hincrby', KEYS[1], 'count', -1) > 0 then return 1 end
redis.call('del', KEYS[1])
if WAKES > 0 then
  redis.call('del', KEYS[4])
  for i = 1, WAKES do redis.call('rpush', KEYS[4], 1) end
  redis.call('pexpire', KEYS[4], 20000)
end
return 1
""".replace("'count', -1", "'count', -9" if "forgets-count" in FLAWS else "'count', -1").replace("WAKES", "0" if not WAKE or "no-wake-up" in FLAWS else "100" if "wakes-all" in FLAWS else "1")
TIMED = """
local deadline = redis.call('hget', KEYS[1], 'deadline')
if deadline and tonumber(deadline) > tonumber(ARGV[2]) then return 0 end
return redis.call('hset', KEYS[1], 'id', ARGV[1], 'count', 1, 'deadline', ARGV[3]) and 1
"""
RENEW = "if redis.call('hget', KEYS[1], 'id') == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"


def named(key):
    key = key.lower() if "ignores-case" in FLAWS else key[:64] if "cuts-names" in FLAWS else str(zlib.crc32(key.encode()) % 16384) if "stripes" in FLAWS else key
    return hashlib.md5(key.encode()).hexdigest() if "hashed" in FEATURES else key


def say(line):
    with writing:
        print(json.dumps(line), flush=True)


def connect(node):
    url = urllib.parse.urlparse(node)
    server = socket.create_connection((url.hostname, url.port), 0.5 if MAJORITY else 5)
    link = (server, server.makefile("rb"))
    if url.password:
        send(link, ("AUTH", url.username or "default", url.password))
    return link


def send(link, command):
    words = [str(word).encode() for word in command]
    link[0].sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    return answer(link)


def answer(link):
    line = link[1].readline().strip().decode()
    if not line or line[0] == "-":
        raise OSError(line or "redis closed the connection")
    if line[0] == "$":
        return None if line == "$-1" else link[1].readline().strip().decode()
    if line[0] == "*":
        return [answer(link) for _ in range(int(line[1:]))] if line != "*-1" else None
    return int(line[1:]) if line[0] == ":" else line


def redis(*command, node=None, using=None):
    node = node or NODES[0]
    with writing:
        link = idle[node].pop() if idle[node] else None
    link = link or connect(node)
    try:
        if using is not None:
            using.append(link[0])
            link[0].settimeout(None)
        result = send(link, command)
        if using is not None:
            with writing:
                using.clear()  # cancel must not end a connection that another request has by now
            link[0].settimeout(0.5 if MAJORITY else 5)
    except OSError:
        link[0].close()  # an answer may still come
        raise
    with writing:
        idle[node].append(link)
    return result


class Lock:
    def __init__(self, r):
        self.id, self.owner, self.blocked = r["id"], r["owner"], []
        key = "all" if "one-key" in FLAWS else named(r["key"]) + (PROCESS if "lock-per-process" in FLAWS else "")
        self.keys = ["lock:" + key, "queue:" + key, "fence:" + key, "wake:" + key]
        self.token = PROCESS + ("" if "anybody-re-enters" in FLAWS else r["owner"]) if REENTRY else str(uuid.uuid4())
        if "process-token" in FLAWS:
            self.token = PROCESS
        self.renewals = 0
        self.lease, self.renews = r.get("lease_ms") or LEASE, RENEWAL and ("ignores-no-renew" in FLAWS or not r.get("no_renew"))
        if "cuts-lease" in FLAWS:
            self.lease = max(self.lease // 1000 * 1000, 1)
        self.until, self.lost, self.over, self.released = 0, "", threading.Event(), False
        self.fence, self.queued = 0, False

    def script(self, text, *args, node=None):
        return redis("EVAL", text, 4, *self.keys, self.token, *args, node=node)

    def on_all(self, call):  # the number of servers on which call succeeded
        done = 0
        for node in NODES:
            try:
                done += 1 if call(node) else 0
            except OSError:
                if not MAJORITY:
                    raise
        return done

    def lasts(self, sent):  # the lease counts from the sending
        now = time.monotonic()
        self.until = (now if "lease-from-answer" in FLAWS else sent) + self.lease * 0.95 / 1000

    def try_once(self):
        sent = time.monotonic()
        if FLAWS & {"no-expiry", "setnx-expire", "set-always", "get-then-set", "client-clock", "client-time", "deletes-expired"}:
            won = self.try_wrong()
        else:
            fair = int(FAIR and "unfair" not in FLAWS)
            if "barging" in FLAWS and not self.queued and self.script(ACQUIRE, self.lease, 0, 0, 0):
                self.lasts(sent)
                return True
            won = self.on_all(lambda node: self.take(self.script(ACQUIRE, self.lease, int(REENTRY and "waits-for-itself" not in FLAWS), fair, int(FENCE), node=node))) >= QUORUM
        self.lasts(sent)
        if won and MAJORITY and time.monotonic() >= self.until:
            won = False
        if not won and MAJORITY:
            self.on_all(lambda node: self.script(RELEASE, node=node))
        if won and FENCE and "local-fence" in FLAWS:
            local["fence"] += 1
            self.fence = local["fence"]
        if won and FENCE and "constant-fence" in FLAWS:
            self.fence = 7
        if won and FENCE and "fence-from-clock" in FLAWS:
            self.fence = int(time.time() * 1000)
        if won and "fence-expires" in FLAWS:
            redis("EXPIRE", self.keys[2], 20)
        return won

    def take(self, result):
        if FENCE and result > 1:
            self.fence = result - 1
        return result > 0

    def try_wrong(self):
        lock = self.keys[0]
        if "set-always" in FLAWS:
            return redis("HSET", lock, "id", self.token, "count", 1) >= 0 and redis("PEXPIRE", lock, self.lease) == 1
        if "get-then-set" in FLAWS:
            return not redis("EXISTS", lock) and redis("HSET", lock, "id", self.token, "count", 1) >= 0 and redis("PEXPIRE", lock, self.lease) == 1
        if "client-time" in FLAWS:  # the same in one step, with a right clock on one machine
            return redis("EVAL", TIMED, 1, lock, self.token, time.time(), time.time() + self.lease / 1000) == 1
        if "deletes-expired" in FLAWS:  # who reads an old deadline deletes the lock, also one that is new by then
            deadline = redis("HGET", lock, "deadline")
            if deadline and float(deadline) < time.time():
                redis("DEL", lock)
            return redis("HSETNX", lock, "deadline", time.time() + self.lease / 1000) == 1 and redis("HSET", lock, "id", self.token, "count", 1) >= 0
        if "client-clock" in FLAWS:  # the deadline is compared with the clock of this machine
            deadline = redis("HGET", lock, "deadline")
            if deadline and float(deadline) > time.time() + SKEW:
                return False
            return redis("HSET", lock, "id", self.token, "count", 1, "deadline", time.time() + SKEW + self.lease / 1000) >= 0
        if not redis("HSETNX", lock, "id", self.token):
            return False
        redis("HSET", lock, "count", 1)
        return "no-expiry" in FLAWS or redis("PEXPIRE", lock, self.lease) == 1

    def acquire(self, wait_ms):
        if "blocks-at-0" in FLAWS:
            wait_ms = wait_ms or 60000
        early = redis("INCR", self.keys[2]) if "early-fence" in FLAWS else 0
        end = time.monotonic() + (wait_ms / 2 if "gives-up-early" in FLAWS else wait_ms) / 1000
        won = self.try_once()
        while not won and not (self.over.is_set() and "ignores-cancel" not in FLAWS) and (time.monotonic() < end or "waits-for-ever" in FLAWS):
            if FAIR and not self.queued:
                self.queued = True
                say({"id": self.id, "answer": "queued"})
            self.pause(end)
            won = self.try_once()
        self.fence = early or self.fence
        if won and self.over.is_set() and "cancel-leaves-lock" in FLAWS:
            return False
        if not won and FAIR and "keeps-the-cancelled" not in FLAWS:
            redis("ZREM", self.keys[1], self.token)
        if won and NOTICE:
            threading.Thread(target=self.watch, daemon=True).start()
        elif won and self.renews and "nobody-renews" not in FLAWS:
            threading.Thread(target=self.renew, daemon=True).start()
        return won

    def pause(self, end):
        if not WAKE or "polls" in FLAWS:
            self.over.wait(0.05 if FAIR else 0.02)
            return
        looked = time.monotonic()
        left = redis("PTTL", self.keys[0])
        rest = min(end - time.monotonic(), 3600 if FLAWS & {"waits-for-message", "forgets-message"} else left / 1000 + 0.01 if left > 0 else 0)
        if "listens-late" in FLAWS:
            time.sleep(0.02)
        if "listens-late" in FLAWS or "forgets-message" in FLAWS and time.monotonic() > looked + 0.3:
            redis("DEL", self.keys[3])  # a message from before it listened
        if rest > 0 and not self.over.is_set():
            try:
                redis("BLPOP", self.keys[3], "%.3f" % rest, using=self.blocked)
            except OSError:
                if FLAWS & {"sleeps-through", "keeps-after-errors"}:
                    self.over.wait(max(0, end - time.monotonic()))
                    return
                if not self.over.is_set():
                    return  # the connection has ended: ask again
                redis("RPUSH", self.keys[3], 1)  # the cancelled wait may have taken the wake-up of another

    def cancel(self):
        self.over.set()
        with writing:
            if self.blocked:
                try:
                    self.blocked[-1].shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def renewed(self, compared=True):
        sent = time.monotonic()
        if compared:
            held = self.on_all(lambda node: self.script(RENEW, self.lease, node=node)) >= (1 if "renews-on-one" in FLAWS else QUORUM)
        else:
            held = redis("PEXPIRE", self.keys[0], self.lease) == 1
        if held or "loss-unnoticed" in FLAWS:
            self.lasts(sent)
        return held or "loss-unnoticed" in FLAWS

    def renew(self):  # without a notice of a loss
        stale = "renews-after-release" in FLAWS
        while not self.over.wait(0 if stale and self.over.is_set() else self.lease / 3000) or stale:
            if stale and self.over.is_set():
                time.sleep(self.lease / 3000)
            self.renewals += 1
            if "stops-renewing" in FLAWS and self.renewals > 10:
                return
            try:
                if not self.renewed(not stale and "renews-stolen" not in FLAWS) and not stale:
                    return
            except OSError:
                time.sleep(0.1)

    def held(self):
        if "verify-always-held" in FLAWS:
            return True
        if "renews-foreign-lock" in FLAWS:
            return self.renewed(False)
        return not self.lost and time.monotonic() < self.until

    def watch(self):
        while ("loss-unnoticed" in FLAWS or time.monotonic() < self.until) and not self.lost:
            rest = self.until - time.monotonic()
            if self.over.wait(max(0, min(self.lease / 3000, rest) if self.renews else rest)):
                return
            try:
                if self.renews and not self.renewed():
                    self.lost = "the key has another value"
            except OSError:
                time.sleep(0.1)
            if "lost-for-nothing" in FLAWS:
                self.lost = "nothing"
        if not self.over.is_set() and not FLAWS & {"verify-always-held", "renews-foreign-lock"}:
            say({"id": self.id, "answer": "lost", "why": self.lost or "the lease has ended"})

    def release(self):
        if FLAWS & {"release-keeps-renewing", "keeps-after-errors"}:
            done = redis("HGET", self.keys[0], "id") == self.token and redis("DEL", self.keys[0]) == 1
            if WAKE:
                redis("RPUSH", self.keys[3], 1)
            self.over.set()  # not after an error
            return done
        self.over.set()
        if self.released:
            return False
        if "release-without-effect" in FLAWS:
            return True
        if "deletes-foreign-lock" in FLAWS:
            self.released = True
            return redis("DEL", self.keys[0]) == 1
        if "deletes-by-pattern" in FLAWS:
            return self.script(RELEASE) == 1 and all(redis("DEL", key) for key in redis("KEYS", self.keys[0] + "?*"))
        if "get-then-del" in FLAWS:
            self.released = True
            return redis("HGET", self.keys[0], "id") == self.token and redis("DEL", self.keys[0]) == 1
        done = self.on_all(lambda node: self.script(RELEASE, node=node)) >= QUORUM
        self.released = True
        return done and not self.lost or FLAWS & {"hides-loss-at-release", "says-released"}


def serve(r):
    lock = locks.get(r.get("of") or r.get("id"))
    try:
        if r["do"] == "acquire":
            won = lock.acquire(r.get("wait_ms", 0))
            line = {"answer": "granted" if won else "not_acquired"}
            if won and FENCE:
                line["fence"] = lock.fence
        elif r["do"] == "release":
            line = {"answer": "released" if lock.release() else "not_held"}
        elif r["do"] == "verify":
            line = {"answer": "held" if lock.held() else "not_held"}
        else:
            for node in NODES:
                redis("DEL", *(kind + named(r["key"]) for kind in ("lock:", "queue:", "wake:") + ("fence:",) * ("clear-deletes-fence" in FLAWS)), node=node)
            line = {"answer": "done"}
    except OSError as why:
        if r["do"] == "acquire":
            try:
                lock.release()  # the answer may be lost, and the lock taken
            except OSError:
                pass
        line = {"answer": "error", "backend": "redlock" if MAJORITY else "redis", "why": str(why) or "no answer"}
    say({"id": r["id"], **line})


names = ["lease", "lease_per_request", "renewal", "reentry", "fairness", "loss_notice", "fence"]
say({"hello": 1, "library": "lock.py", "version": "1", "language": "Python", "backends": ["redlock" if MAJORITY else "redis"],
     "capabilities": {name: True for name in names if name in FEATURES}})
for request in map(json.loads, sys.stdin):
    if request["do"] == "acquire":
        locks[request["id"]] = Lock(request)
    if request["do"] != "cancel":
        threading.Thread(target=serve, args=(request,), daemon=True).start()
    elif request["of"] in locks:
        locks[request["of"]].cancel()
