// A lock in Redis behind the protocol of docs/adapter.md, for Node 18 and later, without packages.
// SET NX PX takes the key, one script deletes it, and another renews it every third of the lease.
const net = require("node:net"), readline = require("node:readline"), { randomUUID } = require("node:crypto");

const ours = (command) => `if redis.call('get',KEYS[1])==ARGV[1] then return redis.call(${command}) end return 0`;
const RELEASE = ours("'del',KEYS[1]"), RENEW = ours("'pexpire',KEYS[1],ARGV[2]");
const url = new URL(process.env.REDIS_URL ?? "redis://127.0.0.1:6379/0");
const locks = new Map(); // by the id of the acquire
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const now = () => performance.now();

// redis sends a command on a new connection, which is never used again after a lost answer.
function redis(...command) {
  const auth = ["AUTH", url.username || "default", decodeURIComponent(url.password)];
  const commands = url.password ? [auth, command] : [command];
  const words = (all) => all.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join("");
  return new Promise((resolve, reject) => {
    const fail = (why) => { server.destroy(); reject(new Error(why)); };
    const server = net.connect({ host: url.hostname, port: url.port || 6379 });
    const timeout = setTimeout(() => fail("redis did not answer within 1 s"), 1000);
    let text = "";
    server.on("connect", () => server.write(commands.map((c) => `*${c.length}\r\n${words(c)}`).join("")));
    server.on("error", (why) => fail(why.message || "redis is away"));
    server.on("close", () => { clearTimeout(timeout); fail("redis closed the connection"); });
    server.on("data", (part) => {
      const lines = (text += part).split("\r\n"); // a status, a nil or a number is one line
      const wrong = lines.find((line) => line.startsWith("-"));
      if (wrong) fail(wrong);
      else if (lines.length > commands.length) { resolve(lines[commands.length - 1]); server.destroy(); }
    });
  });
}

class Lock {
  constructor(r) {
    Object.assign(this, { id: r.id, name: "lock:" + r.key, token: randomUUID(), renews: !r.no_renew });
    this.lease = r.lease_ms ?? Number(process.env.LEASE_MS ?? 10000);
    this.until = 0; this.lost = ""; this.over = false; // over: cancelled or released
  }

  async extend(...command) { // the lease counts from the sending, less 2 % because clocks differ
    const sent = now(), done = ["+OK", ":1"].includes(await redis(...command));
    if (done) this.until = sent + this.lease * 0.98;
    return done;
  }

  held() { return !this.lost && now() < this.until; }

  async acquire(wait) {
    const end = now() + wait;
    try {
      while (!(await this.extend("SET", this.name, this.token, "NX", "PX", this.lease))) {
        if (now() >= end || this.over) return "not_acquired";
        await sleep(20);
      }
    } catch (why) {
      await this.release(); // the answer may be lost, and the key taken
      throw why;
    }
    this.watch();
    return "granted";
  }

  async release() {
    this.over = true;
    return (await redis("EVAL", RELEASE, 1, this.name, this.token)) === ":1" && !this.lost ? "released" : "not_held";
  }

  async watch() { // renews the lease until the release, and sends lost when it has ended
    for (let next = now() + this.lease / 3; this.held() && !this.over; await sleep(10)) {
      if (!this.renews || now() < next) continue;
      next = now() + this.lease / 3;
      const renewed = await this.extend("EVAL", RENEW, 1, this.name, this.token, this.lease).catch(() => { next = now(); return true; });
      if (!renewed) this.lost = "the key was deleted, or has another value";
    }
    if (!this.over) say({ id: this.id, answer: "lost", why: this.lost || "the lease has ended" });
  }
}

async function carryOut(r) {
  if (r.do === "acquire") return locks.get(r.id).acquire(r.wait_ms ?? 0);
  if (r.do === "verify") return locks.get(r.of).held() ? "held" : "not_held";
  if (r.do === "clear") return redis("DEL", "lock:" + r.key).then(() => "done");
  const lock = locks.get(r.of);
  locks.delete(r.of);
  return lock.release();
}

say({
  hello: 1, library: "lock.js", version: "1", language: "JavaScript", backends: ["redis"],
  capabilities: { lease: true, lease_per_request: true, renewal: true, loss_notice: true },
  protects: ["crash", "overrun", "cutoff", "lost-reply"],
  breaks: ["pause", "failover", "clock-jump", "nesting", "polling"].map((hazard) => ({ hazard })),
});
readline.createInterface({ input: process.stdin }).on("close", () => process.exit()).on("line", async (text) => {
  const r = JSON.parse(text);
  if (r.do === "acquire") locks.set(r.id, new Lock(r));
  if (r.do === "cancel") { if (locks.has(r.of)) locks.get(r.of).over = true; return; }
  const line = await carryOut(r).then((answer) => ({ id: r.id, answer }), (why) => ({ id: r.id, answer: "error", backend: "redis", why: why.message || "no answer" }));
  if (r.do === "acquire" && line.answer !== "granted") locks.delete(r.id);
  say(line);
});
