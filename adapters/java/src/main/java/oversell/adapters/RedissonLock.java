package oversell.adapters;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;

/**
 * The locks of Redisson. The argument is lock, fenced, fair, or redlock, which uses the servers of
 * REDLOCK_URLS. The watchdog renews a lock that is acquired without a lease.
 */
final class RedissonLock implements Library {
    private static final long LEASE = Long.parseLong(Adapter.env("LEASE_MS", "30000"));
    private final String kind;
    private final RedissonServers servers;

    private RedissonLock(String kind, RedissonServers servers) {
        this.kind = kind;
        this.servers = servers;
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0], backend = kind.equals("redlock") ? "redlock" : "redis";
        String urls = Adapter.env(backend.equals("redis") ? "REDIS_URL" : "REDLOCK_URLS", "redis://127.0.0.1:6379/0");
        new Adapter(backend, """
                "library":"Redisson %s","version":"4.7.0","document":"https://redisson.pro/docs/data-and-services/locks-and-synchronizers/",\
                "capabilities":{"lease":true,"renewal":true,"reentry":true%s}""".formatted(
                switch (kind) { case "fenced" -> "RFencedLock"; case "fair" -> "fair lock"; case "redlock" -> "RedLock"; default -> "RLock"; },
                kind.equals("fenced") ? ",\"fence\":true" : kind.equals("fair") ? ",\"fairness\":true" : ""), new RedissonLock(kind, new RedissonServers(urls, LEASE))).serve();
    }

    private RLock lock(String name) {
        List<RedissonClient> all = servers.clients();
        return switch (kind) {
            case "fenced" -> all.get(0).getFencedLock(name);
            case "fair" -> all.get(0).getFairLock(name);
            case "redlock" -> redlock(all.stream().map(client -> client.getLock(name)).toArray(RLock[]::new));
            default -> all.get(0).getLock(name);
        };
    }

    @SuppressWarnings("deprecation") // Redisson advises against RedLock
    private static RLock redlock(RLock... locks) { return new RedissonRedLock(locks); }

    @Override
    public Library.Held acquire(Library.Request r) throws InterruptedException {
        RLock lock = lock("lock:" + r.key());
        Long fence = null;
        if (lock instanceof RFencedLock fenced) {
            fence = r.renewed() ? fenced.tryLockAndGetToken(r.waitMs(), TimeUnit.MILLISECONDS)
                    : fenced.tryLockAndGetToken(r.waitMs(), LEASE, TimeUnit.MILLISECONDS);
            return fence == null ? null : new Held(lock, fence);
        }
        Thread watcher = kind.equals("fair") && r.waitMs() > 0 ? watchQueue(r) : null;
        try {
            return tryLock(lock, r) ? new Held(lock, 0) : null;
        } finally {
            if (watcher != null) watcher.interrupt();
        }
    }

    private static boolean tryLock(RLock lock, Library.Request r) throws InterruptedException {
        return r.renewed() ? lock.tryLock(r.waitMs(), TimeUnit.MILLISECONDS) : lock.tryLock(r.waitMs(), LEASE, TimeUnit.MILLISECONDS);
    }

    /** Reports when this thread is in the queue in Redis, because tryLock does not. */
    private Thread watchQueue(Library.Request r) {
        RedissonClient client = servers.clients().get(0);
        String waiter = client.getId() + ":" + Thread.currentThread().getId();
        List<String> queue = client.getList("redisson_lock_queue:{lock:" + r.key() + "}", StringCodec.INSTANCE);
        Thread watcher = new Thread(() -> {
            try {
                while (!queue.contains(waiter)) Thread.sleep(5);
                r.queued().run();
            } catch (InterruptedException | RedisException over) {
                return; // granted, or not acquired
            }
        });
        watcher.start();
        return watcher;
    }

    private record Held(RLock lock, long fence) implements Library.Held {
        @Override
        public boolean release() {
            try {
                lock.unlock();
                return true;
            } catch (IllegalMonitorStateException lost) {
                return false;
            }
        }
    }

    @Override
    public void clear(String key) {
        String name = "lock:" + key;
        for (RedissonClient client : servers.clients()) {
            client.getKeys().delete(name, "redisson_lock_queue:{" + name + "}", "redisson_lock_timeout:{" + name + "}");
        }
    }
}
