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
 * Redisson's RLock (tutorial 3.9.1). The strategy redis shares the lock, because both use the same
 * name: the strategy's id, and the key.
 */
final class OnRedisson implements SharedLock {
    private final RedissonClient client;

    /** {@code lease} is the lease of each lock. The watchdog renews it three times per lease. */
    OnRedisson(String address, Duration lease) {
        Config config = new Config();
        // Locks need no codec. But Redisson 3.11's default codec needs reflection that Java 17 forbids.
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
        // Without a lease argument, the watchdog renews the lock.
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
