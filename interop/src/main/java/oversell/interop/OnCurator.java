package oversell.interop;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's InterProcessMutex (tutorial 4.6.1). The strategy zk shares the lock, because both use
 * the same path.
 */
final class OnCurator implements SharedLock {
    private final CuratorFramework client;

    /** The mutex of each key. A thread can acquire a lock again only through the same mutex. */
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();

    /** {@code lease} is the session's time-out: a dead process holds the lock no longer. */
    OnCurator(String address, Duration lease) throws InterruptedException {
        client = CuratorFrameworkFactory.builder()
                .connectString(address)
                .sessionTimeoutMs((int) lease.toMillis())
                .connectionTimeoutMs(15_000)
                .retryPolicy(new ExponentialBackoffRetry(100, 10))
                .build();
        client.start();
        if (!client.blockUntilConnected(60, TimeUnit.SECONDS)) {
            client.close();
            throw new IllegalStateException("no ZooKeeper at " + address);
        }
    }

    private InterProcessMutex mutex(String key) {
        return mutexes.computeIfAbsent(key, k -> new InterProcessMutex(client, "/oversell/zk/" + k));
    }

    @Override
    public boolean acquire(String key, Duration wait) throws Exception {
        return mutex(key).acquire(wait.toMillis(), TimeUnit.MILLISECONDS);
    }

    @Override
    public void release(String key) throws Exception {
        mutex(key).release();
    }

    /** Returns 1 if this thread has one or more acquisitions: Curator does not return their number. */
    @Override
    public int count(String key) {
        return mutex(key).isOwnedByCurrentThread() ? 1 : 0;
    }

    @Override
    public Class<?> library() {
        return InterProcessMutex.class;
    }

    @Override
    public void close() {
        client.close();
    }
}
