package oversell.adapters;

import java.time.Duration;
import org.springframework.dao.CannotAcquireLockException;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.support.locks.DistributedLock;
import org.springframework.integration.util.UUIDConverter;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;

/** Spring Integration's JdbcLockRegistry. The holder renews a lock only by calls of renewLock. */
final class JdbcRegistry implements Library {
    private static final Duration LEASE = Duration.ofMillis(Long.parseLong(Adapter.env("LEASE_MS", "10000")));
    private JdbcLockRegistry registry; // null until the first request
    private JdbcTemplate mysql;

    public static void main(String[] args) throws Exception {
        new Adapter("mysql", """
                "library":"Spring Integration JdbcLockRegistry","version":"7.1.2",\
                "document":"https://docs.spring.io/spring-integration/reference/jdbc/lock-registry.html",\
                "capabilities":{"lease":true,"lease_per_request":true,"reentry":true}""", new JdbcRegistry()).serve();
    }

    private synchronized JdbcLockRegistry registry() {
        if (registry == null) {
            var source = Spring.mysql();
            mysql = new JdbcTemplate(source);
            // The table of the library's schema-mysql.sql.
            mysql.execute("""
                    CREATE TABLE IF NOT EXISTS INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),
                    CREATED_DATE DATETIME(6) NOT NULL, EXPIRED_AFTER DATETIME(6) NOT NULL,
                    constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)) ENGINE=InnoDB""");
            var repository = new DefaultLockRepository(source);
            repository.setTransactionManager(new DataSourceTransactionManager(source));
            repository.afterPropertiesSet();
            repository.afterSingletonsInstantiated();
            registry = new JdbcLockRegistry(repository, LEASE);
        }
        return registry;
    }

    @Override
    public Library.Held acquire(Library.Request r) throws InterruptedException {
        DistributedLock lock = registry().obtain(r.key());
        Duration lease = r.leaseMs() > 0 ? Duration.ofMillis(r.leaseMs()) : LEASE;
        try {
            return lock.tryLock(Duration.ofMillis(r.waitMs()), lease) ? () -> Spring.release(lock) : null;
        } catch (CannotAcquireLockException e) {
            if (e.getCause() instanceof InterruptedException) return null;
            throw e;
        }
    }

    @Override
    public void clear(String key) {
        registry();
        mysql.update("DELETE FROM INT_LOCK WHERE LOCK_KEY = ?", UUIDConverter.getUUID(key).toString());
    }
}
