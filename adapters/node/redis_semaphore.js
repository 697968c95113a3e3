// The Mutex of redis-semaphore on one Redis, or its RedlockMutex on the servers of REDLOCK_URLS with
// the argument 5. It refreshes its lock, and calls onLockLost when a refresh finds that the lock is lost.
const { default: Redis } = require("ioredis");
const { Mutex, RedlockMutex } = require("redis-semaphore");
const { "redis-semaphore": version } = require("./package.json").dependencies;
const { LEASE, serve } = require("./adapter");

const five = process.argv[2] === "5";
const urls = (five ? process.env.REDLOCK_URLS : process.env.REDIS_URL) ?? "redis://127.0.0.1:6379/0";
// Without time-outs, a command on a cut connection would never end. All else is the default.
const options = { lazyConnect: true, connectTimeout: 1000, commandTimeout: 1000 };
const clients = urls.split(",").map((url) => new Redis(url, options).on("error", (why) => console.error(why.message)));

function newLock(r, lose) {
  const lockTimeout = r.lease_ms ?? LEASE;
  const wait = r.wait_ms ? { acquireTimeout: r.wait_ms } : { acquireAttemptsLimit: 1 };
  const refresh = r.no_renew ? { refreshInterval: 0 } : {};
  const settings = { lockTimeout, ...wait, ...refresh, onLockLost: (why) => lose(why.message) };
  const mutex = five ? new RedlockMutex(clients, r.key, settings) : new Mutex(clients[0], r.key, settings);
  return {
    acquire: (_, cancel) => mutex.tryAcquire(cancel).catch((why) => {
      if (cancel.aborted) return false;
      throw why;
    }),
    held: () => mutex.isAcquired,
    release: () => mutex.release().then(() => true),
  };
}

serve({
  library: `redis-semaphore ${five ? "RedlockMutex" : "Mutex"}`, version,
  document: "https://github.com/swarthy/redis-semaphore#readme",
  backends: [five ? "redlock" : "redis"],
  capabilities: { lease: true, lease_per_request: true, renewal: true, loss_notice: true, release_result: false },
}, newLock, (key) => Promise.all(clients.map((client) => client.del("mutex:" + key))));
