// Shows https://github.com/mike-marcacci/node-redlock/issues/296 on the Redis of REDIS_URL.
//
// A client waits for a lock for longer than the lease that it wants. The program exits with 1 if the
// acquired lock says that its lease has already expired. The argument is the folder of the package.
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const path = require("node:path");

const folder = path.resolve(process.argv[2]);
const load = createRequire(path.join(folder, "package.json"));
const { Redis } = load("ioredis");
const redlock = load("redlock");

const key = "incident:node-redlock-296";
const lease = 2000; // milliseconds

async function main() {
  const redis = new Redis(process.env.REDIS_URL || "redis://127.0.0.1:6379");
  const locks = new (redlock.default || redlock)([redis], { retryCount: -1, retryDelay: 50, retryJitter: 0 });
  await redis.set(key, "another client", "PX", 2 * lease);
  const lock = await locks.acquire([key], lease);
  const valid = lock.expiration > Date.now();
  const left = await redis.pttl(key);
  await redis.del(key);
  redis.disconnect();
  if (left <= 0) {
    throw new Error("the key expired before the program read its lease");
  }
  const version = JSON.parse(readFileSync(path.join(folder, "node_modules/redlock/package.json"))).version.replace("v", "");
  console.log(`redlock ${version}: a lock that was acquired after a wait longer than its lease says that its lease ${valid ? "lasts" : "has expired, although its key lasts in Redis"}.`);
  process.exit(valid ? 0 : 1);
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
