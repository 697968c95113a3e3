package oversell.shop;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** A shop that sells from one row, as a program of a student: see docs/lab.md. */
@SpringBootApplication
public class ShopApplication {
    public static void main(String[] args) {
        SpringApplication.run(ShopApplication.class, args);
    }

    @Bean(destroyMethod = "shutdown")
    RedissonClient redisson(
            @Value("redis://${spring.data.redis.host}:${spring.data.redis.port}") String address,
            @Value("${spring.data.redis.password}") String password) {
        Config config = new Config();
        config.setPassword(password).useSingleServer().setAddress(address);
        return Redisson.create(config);
    }

    /** A ZooKeeper without a password (oversell lab --open) ignores the authorization. */
    @Bean(initMethod = "start", destroyMethod = "close")
    CuratorFramework curator(
            @Value("${zookeeper}") String connectString, @Value("${lab.user}:${lab.password}") String login) {
        return CuratorFrameworkFactory.builder()
                .connectString(connectString)
                .authorization("digest", login.getBytes())
                .retryPolicy(new ExponentialBackoffRetry(1000, 3))
                .build();
    }
}
