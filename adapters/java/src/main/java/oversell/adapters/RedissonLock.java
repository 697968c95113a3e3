package oversell.adapters;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * The locks of Redisson. The argument is lock, fenced, fair, or redlock, which uses the servers of
 * REDLOCK_URLS. The watchdog renews a lock that is acquired without a lease.
 */
final class RedissonLock implements Adapter.Library {
    private static final long LEASE = Long.parseLong(Adapter.env("LEASE_MS", "30000"));
    private final String kind;
    private final String[] urls;
    private List<RedissonClient> clients; // null until the first request

    private RedissonLock(String kind, String urls) {
        this.kind = kind;
        this.urls = urls.split(",");
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0], backend = kind.equals("redlock") ? "redlock" : "redis";
        String urls = Adapter.env(backend.equals("redis") ? "REDIS_URL" : "REDLOCK_URLS", "redis://127.0.0.1:6379/0");
        new Adapter(backend, """
                "library":"Redisson %s","version":"4.7.0","document":"https://redisson.pro/docs/data-and-services/locks-and-synchronizers/",\
                "capabilities":{"lease":true,"renewal":true,"reentry":true%s}""".formatted(
                switch (kind) { case "fenced" -> "RFencedLock"; case "fair" -> "fair lock"; case "redlock" -> "RedLock"; default -> "RLock"; },
                kind.equals("fenced") ? ",\"fence\":true" : ""), new RedissonLock(kind, urls)).serve();
    }

    private synchronized List<RedissonClient> clients() {
        if (clients == null) {
            List<RedissonClient> all = new ArrayList<>();
            for (String url : urls) all.add(connect(URI.create(url)));
            clients = all;
        }
        return clients;
    }

    private static RedissonClient connect(URI url) {
        Config config = new Config();
        config.setLockWatchdogTimeout(LEASE);
        config.setLazyInitialization(true); // a server of RedLock may be down
        var server = config.useSingleServer().setAddress("redis://" + url.getHost() + ":" + url.getPort())
                .setConnectionMinimumIdleSize(4).setConnectionPoolSize(16);
        if (url.getUserInfo() != null) {
            String[] user = url.getUserInfo().split(":", 2);
            if (!user[0].isEmpty()) config.setUsername(user[0]);
            config.setPassword(user[1]);
        }
        return Redisson.create(config);
    }

    private RLock lock(String name) {
        List<RedissonClient> all = clients();
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
    public Adapter.Held acquire(Adapter.Request r) throws InterruptedException {
        RLock lock = lock("lock:" + r.key());
        Long fence = null;
        if (lock instanceof RFencedLock fenced) {
            fence = r.renewed() ? fenced.tryLockAndGetToken(r.waitMs(), TimeUnit.MILLISECONDS)
                    : fenced.tryLockAndGetToken(r.waitMs(), LEASE, TimeUnit.MILLISECONDS);
            return fence == null ? null : new Held(lock, fence);
        }
        boolean granted = r.renewed() ? lock.tryLock(r.waitMs(), TimeUnit.MILLISECONDS) : lock.tryLock(r.waitMs(), LEASE, TimeUnit.MILLISECONDS);
        return granted ? new Held(lock, 0) : null;
    }

    private record Held(RLock lock, long fence) implements Adapter.Held {
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
        for (RedissonClient client : clients()) {
            client.getKeys().delete(name, "redisson_lock_queue:{" + name + "}", "redisson_lock_timeout:{" + name + "}");
        }
    }
}
