import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

/**
 * Shows https://issues.apache.org/jira/browse/CURATOR-621 on the first server of ZK_SERVERS.
 *
 * <p>A holder of the write lock acquires the read lock and releases the write lock, while a second
 * client waits for the write lock. The program exits with 1 if the second client acquires it although
 * the first still holds the read lock. The argument is the version of Curator.
 */
class Main {
    static final String PATH = "/incident-curator-621";

    public static void main(String[] args) {
        try {
            reproduce(args);
        } catch (Exception e) { // the JVM would end with 1, which means that the report is reproduced
            e.printStackTrace();
            System.exit(2);
        }
    }

    static void reproduce(String[] args) throws Exception {
        CuratorFramework one = connect(), two = connect();
        var first = new InterProcessReadWriteLock(one, PATH);
        if (!first.writeLock().acquire(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the lock is held before the start");
        }
        var acquired = new boolean[1];
        var waiter = new Thread(() -> {
            try {
                acquired[0] = new InterProcessReadWriteLock(two, PATH).writeLock().acquire(10, TimeUnit.SECONDS);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        waiter.start();
        while (one.getChildren().forPath(PATH).size() < 2) {
            Thread.sleep(10);
        }
        first.readLock().acquire();
        first.writeLock().release();
        waiter.join();
        one.close();
        two.close();
        System.out.printf("Curator %s: a second client %s.%n", args[0], acquired[0]
                ? "acquired the write lock while the first held the read lock"
                : "did not acquire the write lock within 10 s, while the first held the read lock");
        System.exit(acquired[0] ? 1 : 0);
    }

    static CuratorFramework connect() {
        String server = System.getenv().getOrDefault("ZK_SERVERS", "127.0.0.1:2181").split(",")[0];
        var client = CuratorFrameworkFactory.newClient(server, new RetryOneTime(100));
        client.start();
        return client;
    }
}
