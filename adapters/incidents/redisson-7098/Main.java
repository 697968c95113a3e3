import java.net.URI;
import java.util.stream.StreamSupport;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Shows https://github.com/redisson/redisson/pull/7098 on the Redis of REDIS_URL.
 *
 * <p>Two clients hold a read lock, and the first ends without a release. The program exits with 1
 * if the lease of the first does not expire, because the second client renews it.
 */
class Main {
    static final String KEY = "incident:redisson-7098";
    static final long LEASE = 3000; // milliseconds; a client renews after a third of it

    public static void main(String[] args) {
        try {
            reproduce(args);
        } catch (Exception e) { // the JVM would end with 1, which means that the report is reproduced
            e.printStackTrace();
            System.exit(2);
        }
    }

    static void reproduce(String[] args) throws Exception {
        RedissonClient first = connect(), second = connect();
        second.getKeys().deleteByPattern("*" + KEY + "*");
        first.getReadWriteLock(KEY).readLock().lock();
        second.getReadWriteLock(KEY).readLock().lock();
        String lease = "*" + KEY + "}:" + first.getId() + ":*";
        if (!exists(second, lease)) {
            throw new IllegalStateException("the lease of the first client has another key than " + lease);
        }
        first.shutdown();
        long end = System.currentTimeMillis() + 6 * LEASE;
        while (exists(second, lease) && System.currentTimeMillis() < end) {
            Thread.sleep(LEASE / 10);
        }
        boolean renewed = exists(second, lease);
        second.getKeys().deleteByPattern("*" + KEY + "*");
        second.shutdown();
        System.out.printf("Redisson %s: after the end of a client, its lease on a read lock %s.%n",
                Redisson.class.getPackage().getImplementationVersion(),
                renewed ? "is renewed by another client" : "expired, although another client holds this lock");
        System.exit(renewed ? 1 : 0);
    }

    static RedissonClient connect() {
        var config = new Config();
        config.setLockWatchdogTimeout(LEASE);
        var redis = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
        config.useSingleServer().setAddress("redis://" + redis.getRawAuthority());
        return Redisson.create(config);
    }

    static boolean exists(RedissonClient client, String pattern) {
        return StreamSupport.stream(client.getKeys().getKeysByPattern(pattern).spliterator(), false).findAny().isPresent();
    }
}
