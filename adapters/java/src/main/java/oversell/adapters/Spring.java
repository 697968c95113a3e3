package oversell.adapters;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.net.URI;
import java.time.Duration;
import java.util.ConcurrentModificationException;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.support.locks.DistributedLock;

/** What both of Spring's locks need. Without time-outs, a command on a cut connection would take a minute. */
final class Spring {
    private Spring() {}

    static LettuceConnectionFactory redis() {
        URI url = URI.create(Adapter.env("REDIS_URL", "redis://127.0.0.1:6379/0"));
        var server = new RedisStandaloneConfiguration(url.getHost(), url.getPort());
        if (url.getUserInfo() != null) {
            String[] user = url.getUserInfo().split(":", 2);
            if (!user[0].isEmpty()) server.setUsername(user[0]);
            server.setPassword(user[1]);
        }
        var factory = new LettuceConnectionFactory(server, LettuceClientConfiguration.builder().commandTimeout(Duration.ofSeconds(1)).build());
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }

    /** Returns a pool of connections to the MySQL of a lab, which has no TLS and need not run yet. */
    static HikariDataSource mysql() {
        URI url = URI.create(Adapter.env("MYSQL_URL", "mysql://root@127.0.0.1:3306/oversell"));
        String[] user = url.getUserInfo().split(":", 2);
        var config = new HikariConfig();
        config.setJdbcUrl("jdbc:mariadb://" + url.getHost() + ":" + url.getPort() + url.getPath()
                + "?sslMode=disable&connectTimeout=1000&socketTimeout=2000");
        config.setUsername(user[0]);
        if (user.length > 1) config.setPassword(user[1]);
        config.setConnectionTimeout(1000);
        config.setInitializationFailTimeout(-1);
        return new HikariDataSource(config);
    }

    /** Returns false if the lock had expired. */
    static boolean release(DistributedLock lock) {
        try {
            lock.unlock();
            return true;
        } catch (ConcurrentModificationException expired) {
            return false;
        }
    }
}
