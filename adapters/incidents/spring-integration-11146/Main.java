import java.net.URI;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry;

/**
 * Shows https://github.com/spring-projects/spring-integration/issues/11146 on the Redis of REDIS_URL.
 *
 * <p>A thread holds one lock, and acquires and releases other locks. The program exits with 1 if the
 * key of a released lock is still in Redis. The argument is the version of Spring Integration.
 */
class Main {
    static final String REGISTRY = "incident:spring-integration-11146";
    static final int LOCKS = 5000; // so many that some share a local lock with the held one

    public static void main(String[] args) {
        try {
            reproduce(args);
        } catch (Exception e) { // the JVM would end with 1, which means that the report is reproduced
            e.printStackTrace();
            System.exit(2);
        }
    }

    static void reproduce(String[] args) throws Exception {
        var redis = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
        var server = new RedisStandaloneConfiguration(redis.getHost(), redis.getPort());
        if (redis.getUserInfo() != null) {
            String[] user = redis.getUserInfo().split(":", 2);
            server.setUsername(user[0]);
            server.setPassword(user[1]);
        }
        var connections = new LettuceConnectionFactory(server);
        connections.afterPropertiesSet();
        connections.start();
        var keys = new StringRedisTemplate(connections);
        keys.delete(keys.keys(REGISTRY + ":*"));
        var registry = new RedisLockRegistry(connections, REGISTRY, 60_000);

        var held = registry.obtain("held");
        held.lock();
        for (int i = 0; i < LOCKS; i++) {
            var lock = registry.obtain("lock " + i);
            lock.lock();
            lock.unlock();
        }
        held.unlock();
        int left = keys.keys(REGISTRY + ":*").size();
        keys.delete(keys.keys(REGISTRY + ":*"));
        System.out.printf("Spring Integration %s: of %d released locks, %d are still held in Redis.%n", args[0], LOCKS + 1, left);
        System.exit(left > 0 ? 1 : 0);
    }
}
