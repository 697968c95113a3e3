package oversell.interop;

import java.net.URI;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Redisson's RLock (tutorial 3.9.1). A lock of the strategy redis has the id before its key:
 * that is all that a Java service must know to share it.
 */
final class OnRedisson implements SharedLock {
    private final RedissonClient client;

    /** The watchdog renews every third of {@code lease}; a dead process holds so long at most. */
    OnRedisson(String address, Duration lease) {
        Config config = new Config();
        // Locks don't use it. But the default of Redisson 3.11 looks into java.lang, which Java 17 forbids.
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(lease.toMillis());
        URI uri = URI.create(address); // of the form redis://:password@host:port
        config.useSingleServer()
                .setAddress("redis://" + uri.getHost() + ":" + uri.getPort())
                .setPassword(uri.getUserInfo() == null ? null : uri.getUserInfo().split(":", 2)[1])
                .setConnectionMinimumIdleSize(4)
                .setConnectionPoolSize(16);
        client = Redisson.create(config);
    }

    private RLock lock(String key) {
        return client.getLock("redis:" + key);
    }

    @Override
    public boolean acquire(String key, Duration wait) throws InterruptedException {
        // Without a lease of its own the watchdog renews it.
        return lock(key).tryLock(wait.toMillis(), TimeUnit.MILLISECONDS);
    }

    @Override
    public void release(String key) {
        lock(key).unlock();
    }

    @Override
    public int count(String key) {
        return lock(key).getHoldCount();
    }

    @Override
    public Class<?> library() {
        return Redisson.class;
    }

    @Override
    public void close() {
        client.shutdown();
    }
}
