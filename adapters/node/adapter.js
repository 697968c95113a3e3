// The protocol of docs/adapter.md for locks of JavaScript libraries. A library is a function that
// makes the lock of one acquire. The lock has the methods acquire(wait, signal), release() and, with
// loss_notice, held(). acquire and release resolve to false if the lock was not acquired, or not held
// any more. A cancel aborts the signal. lose(why) sends that the lock was lost.
const readline = require("node:readline");

const LEASE = Number(process.env.LEASE_MS ?? 10000);
const uses = new Map(); // the acquires that wait or hold their lock, by id
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

async function carryOut(r, newLock, clear) {
  if (r.do === "clear") return clear(r.key).then(() => "done");
  if (r.do === "acquire") {
    const use = uses.get(r.id);
    use.lock = newLock(r, (why) => uses.has(r.id) && say({ id: r.id, answer: "lost", why }));
    return (await use.lock.acquire(r.wait_ms ?? 0, use.cancel.signal)) ? "granted" : "not_acquired";
  }
  const use = uses.get(r.of);
  if (!use) return "not_held";
  if (r.do === "verify") return use.lock.held() ? "held" : "not_held";
  uses.delete(r.of);
  return (await use.lock.release()) ? "released" : "not_held";
}

function begin(r, backend, newLock, clear) {
  if (r.do === "cancel") {
    uses.get(r.of)?.cancel.abort();
    return;
  }
  if (!["acquire", "release", "verify", "clear"].includes(r.do)) throw new Error(`unknown request ${r.do}`);
  if (r.do === "acquire") uses.set(r.id, { cancel: new AbortController() });
  carryOut(r, newLock, clear).then((answer) => ({ answer }), (why) => ({ answer: "error", backend, why: why.message || String(why) })).then((line) => {
    if (r.do === "acquire" && line.answer !== "granted") uses.delete(r.id);
    say({ id: r.id, ...line });
  });
}

// serve sends the hello, and answers the requests until the end of the input.
function serve(hello, newLock, clear) {
  say({ hello: 1, language: "JavaScript", ...hello });
  let n = 0;
  readline.createInterface({ input: process.stdin }).on("close", () => process.exit()).on("line", (text) => {
    n++;
    try {
      begin(JSON.parse(text), hello.backends[0], newLock, clear);
    } catch (why) {
      console.error(`line ${n}: ${why.message}`);
      process.exit(1);
    }
  });
}

module.exports = { LEASE, serve };
