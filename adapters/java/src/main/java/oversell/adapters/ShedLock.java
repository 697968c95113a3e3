package oversell.adapters;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * ShedLock with the provider of the argument, jdbc or redis. A task whose lock is held elsewhere is skipped,
 * so the adapter tries again every 100 ms. A lock ends after lockAtMostFor. KeepAliveLockProvider needs 30 s for that.
 */
final class ShedLock implements Library {
    private static final Duration LEASE = Duration.ofMillis(Long.parseLong(Adapter.env("LEASE_MS", "60000")));
    private final ExecutorService tries = Executors.newCachedThreadPool();
    private final boolean redis;
    private LockProvider provider; // null until the first request
    private JdbcTemplate rows;
    private StringRedisTemplate keys;

    private ShedLock(boolean redis) { this.redis = redis; }

    public static void main(String[] args) throws Exception {
        boolean redis = args[0].equals("redis");
        new Adapter(redis ? "redis" : "mysql", """
                "library":"ShedLock %s","version":"7.10.1","document":"https://github.com/lukas-krecan/ShedLock#readme",\
                "capabilities":{"lease":true,"lease_per_request":true,"release_result":false}"""
                .formatted(redis ? "RedisLockProvider" : "JdbcTemplateLockProvider"), new ShedLock(redis)).serve();
    }

    private synchronized LockProvider provider() {
        if (provider == null) provider = redis ? onRedis() : onMysql();
        return provider;
    }

    private LockProvider onRedis() {
        var factory = Spring.redis();
        keys = new StringRedisTemplate(factory);
        return new RedisLockProvider(factory, "lab");
    }

    private LockProvider onMysql() {
        rows = new JdbcTemplate(Spring.mysql());
        rows.execute("""
                CREATE TABLE IF NOT EXISTS shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL,
                locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))""");
        // By default, lockedBy is the name of the host: each program here stands for a host of its own.
        return new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder().withJdbcTemplate(rows)
                .withLockedByValue("host-" + ProcessHandle.current().pid()).usingDbTime().build());
    }

    @Override
    public Library.Held acquire(Library.Request r) throws InterruptedException {
        Duration lease = r.leaseMs() > 0 ? Duration.ofMillis(r.leaseMs()) : LEASE;
        long end = System.nanoTime() + r.waitMs() * 1_000_000;
        for (;;) {
            // join cannot be interrupted: the library has no wait, so a cancel must not end a try.
            Optional<SimpleLock> lock = CompletableFuture.supplyAsync(() -> provider()
                    .lock(new LockConfiguration(Instant.now(), r.key(), lease, Duration.ZERO)), tries).join();
            if (lock.isPresent()) return () -> release(lock.get());
            long left = (end - System.nanoTime()) / 1_000_000;
            if (left <= 0) return null;
            Thread.sleep(Math.min(left, 100));
        }
    }

    private static boolean release(SimpleLock lock) {
        lock.unlock(); // it has no result
        return true;
    }

    /** Follows the documentation: a row must not be deleted, because the provider remembers it. */
    @Override
    public void clear(String key) {
        provider();
        if (redis) keys.delete("job-lock:lab:" + key);
        else rows.update("UPDATE shedlock SET lock_until = UTC_TIMESTAMP(3) WHERE name = ?", key);
    }
}
