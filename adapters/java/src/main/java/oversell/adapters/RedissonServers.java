package oversell.adapters;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URI;
import java.net.URLDecoder;
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
        this.urls = urls.split(",(?=redis)"); // one URL of Sentinel has several hosts
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
        String[] at = url.getRawAuthority().split("@"); // of several hosts, java.net.URI knows only this
        String[] hosts = Stream.of(at[at.length - 1].split(",")).map(host -> "redis://" + host).toArray(String[]::new);
        switch (url.getScheme()) {
            case "redis-sentinel" -> {
                var sentinels = config.useSentinelServers().addSentinelAddress(hosts).setMasterName(url.getPath().substring(1));
                // a client may reach only one of them
                sentinels.setCheckSentinelsList(false);
                if (url.getRawQuery() != null) {
                    String[] login = login(url.getRawQuery().replaceFirst("^sentinel=", ""));
                    sentinels.setSentinelUsername(login[0]).setSentinelPassword(login[1]);
                }
            }
            case "redis-cluster" -> config.useClusterServers().addNodeAddress(hosts);
            default -> config.useSingleServer().setAddress(hosts[0]).setConnectionMinimumIdleSize(4).setConnectionPoolSize(16);
        }
        if (at.length > 1) {
            config.setUsername(login(at[0])[0]);
            config.setPassword(login(at[0])[1]);
        }
        return Redisson.create(config);
    }

    /** Returns the user, or null, and the password in user:password, which is percent-encoded. */
    private static String[] login(String text) {
        String[] parts = text.split(":", 2);
        String user = URLDecoder.decode(parts[0], UTF_8), password = URLDecoder.decode(parts[1], UTF_8);
        return new String[] {user.isEmpty() ? null : user, password};
    }
}
