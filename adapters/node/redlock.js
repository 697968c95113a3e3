// Redlock (node-redlock), or its fork with the argument sesamecare, on one Redis, or on the servers of
// REDLOCK_URLS with the argument 5. The method using renews the lock, and aborts a signal when a
// renewal fails.
const { default: Redis } = require("ioredis");
const { dependencies } = require("./package.json");
const { LEASE, serve } = require("./adapter");

const fork = process.argv.includes("sesamecare"), five = process.argv.includes("5");
const library = fork ? "@sesamecare-oss/redlock" : "redlock";
const { default: Original, Redlock = Original, ExecutionError, ResourceLockedError } = require(library);
const urls = (five ? process.env.REDLOCK_URLS : process.env.REDIS_URL) ?? "redis://127.0.0.1:6379/0";
// Without time-outs, a command on a cut connection would never end. All else is the default.
const options = { lazyConnect: true, connectTimeout: 1000, commandTimeout: 1000 };
const clients = urls.split(",").map((url) => new Redis(url, options).on("error", (why) => console.error(why.message)));
const redlock = new Redlock(clients);
const { retryDelay } = redlock.settings;

// refused returns whether a majority of servers answered that another lock has the key. Otherwise
// a majority did not answer, and why is the reason.
async function refused(why) {
  if (!(why instanceof ExecutionError) || why.attempts.length === 0) return why.message.includes("already-expired");
  const { votesAgainst, quorumSize } = await why.attempts.at(-1);
  return [...votesAgainst.values()].filter((error) => error instanceof ResourceLockedError).length > clients.length - quorumSize;
}

class Lock {
  constructor(r, lose) {
    Object.assign(this, { key: "lock:" + r.key, lease: r.lease_ms ?? LEASE, renews: !r.no_renew, lose });
  }

  // acquire calls using with few retries, again and again: using cannot be cancelled.
  async acquire(wait, cancel) {
    const end = performance.now() + wait;
    for (;;) {
      const retryCount = Math.min(4, Math.max(0, Math.floor((end - performance.now()) / retryDelay)));
      try {
        await (this.renews ? this.start(retryCount) : this.acquireOnce(retryCount));
        return true;
      } catch (why) {
        if (!(await refused(why))) throw new Error(await reason(why));
        const left = end - performance.now();
        if (left <= 0 || cancel.aborted) return false;
        await new Promise((wake) => setTimeout(wake, Math.min(left, retryDelay)));
      }
    }
  }

  // start resolves when the routine of using has begun. The routine ends with the release.
  start(retryCount) {
    return new Promise((resolve, reject) => {
      this.over = redlock.using([this.key], this.lease, { retryCount }, (signal) => {
        this.signal = signal;
        signal.addEventListener("abort", () => this.lose(signal.error?.message ?? "the renewal failed"));
        resolve();
        return new Promise((end) => (this.end = end));
      });
      this.over.catch(reject); // after resolve, this has no effect
    });
  }

  // acquireOnce acquires a lock that is not renewed. The library has its end, and no event for it.
  async acquireOnce(retryCount) {
    const lock = await redlock.acquire([this.key], this.lease, { retryCount }), ended = new AbortController();
    this.signal = ended.signal;
    const timer = setTimeout(() => { ended.abort(); this.lose("the lease has ended"); }, lock.expiration - Date.now());
    this.end = () => { clearTimeout(timer); this.over = lock.release(); };
  }

  held() { return !this.signal.aborted; }

  async release() {
    this.end();
    try {
      await this.over; // using releases the lock itself
      return !this.signal.aborted;
    } catch (why) {
      if (await refused(why)) return false;
      throw new Error(await reason(why));
    }
  }
}

// reason names the errors of the servers, which the message of an ExecutionError does not have.
async function reason(why) {
  const last = await why.attempts?.at(-1);
  return [why.message, ...(last?.votesAgainst.values() ?? [])].map((error) => error.message ?? error).join("; ");
}

serve({
  library, version: dependencies[library],
  document: fork ? "https://github.com/sesamecare/redlock#readme" : "https://github.com/mike-marcacci/node-redlock#readme",
  backends: [five ? "redlock" : "redis"],
  capabilities: { lease: true, lease_per_request: true, renewal: true, loss_notice: true },
}, (r, lose) => new Lock(r, lose), (key) => Promise.all(clients.map((client) => client.del("lock:" + key))));
