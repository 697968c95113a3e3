package oversell.adapters;

import java.net.URI;
import java.util.List;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** A client of Redisson for each server. The lease in milliseconds is the watchdog's. */
final class RedissonServers {
    private final String[] urls;
    private final long lease;
    private List<RedissonClient> clients; // null until the first request

    RedissonServers(String urls, long lease) {
        this.urls = urls.split(",");
        this.lease = lease;
    }

    /** Returns the clients, which connect with their first command. */
    synchronized List<RedissonClient> clients() {
        if (clients == null) clients = Stream.of(urls).map(url -> connect(URI.create(url))).toList();
        return clients;
    }

    private RedissonClient connect(URI url) {
        Config config = new Config();
        config.setLockWatchdogTimeout(lease);
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
}
