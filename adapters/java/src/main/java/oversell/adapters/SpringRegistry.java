package oversell.adapters;

import java.time.Duration;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.support.locks.DistributedLock;

/** Spring Integration's RedisLockRegistry. Without a task scheduler, it does not renew its locks. */
final class SpringRegistry implements Library {
    private static final Duration LEASE = Duration.ofMillis(Long.parseLong(Adapter.env("LEASE_MS", "60000")));
    private RedisLockRegistry registry; // null until the first request
    private StringRedisTemplate redis;

    public static void main(String[] args) throws Exception {
        new Adapter("redis", """
                "library":"Spring Integration RedisLockRegistry","version":"7.1.2",\
                "document":"https://docs.spring.io/spring-integration/reference/redis.html",\
                "capabilities":{"lease":true,"lease_per_request":true,"reentry":true}""", new SpringRegistry()).serve();
    }

    private synchronized RedisLockRegistry registry() {
        if (registry == null) {
            var factory = Spring.redis();
            redis = new StringRedisTemplate(factory);
            registry = new RedisLockRegistry(factory, "locks", LEASE.toMillis());
        }
        return registry;
    }

    @Override
    public Library.Held acquire(Library.Request r) throws InterruptedException {
        DistributedLock lock = registry().obtain(r.key());
        Duration lease = r.leaseMs() > 0 ? Duration.ofMillis(r.leaseMs()) : LEASE;
        return lock.tryLock(Duration.ofMillis(r.waitMs()), lease) ? () -> Spring.release(lock) : null;
    }

    @Override
    public void clear(String key) {
        registry();
        redis.delete("locks:" + key);
    }
}
