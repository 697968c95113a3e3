import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Shows https://issues.apache.org/jira/browse/CURATOR-462 on the first server of ZK_SERVERS.
 *
 * <p>A waiter of an InterProcessSemaphoreMutex is interrupted, then the holder releases. The program
 * exits with 1 if nobody can acquire the lock, because the node of the waiter is still in the queue.
 * The argument is the version of Curator.
 */
class Main {
    static final String PATH = "/incident-curator-462";

    public static void main(String[] args) {
        try {
            reproduce(args);
        } catch (Exception e) { // the JVM would end with 1, which means that the report is reproduced
            e.printStackTrace();
            System.exit(2);
        }
    }

    static void reproduce(String[] args) throws Exception {
        String server = System.getenv().getOrDefault("ZK_SERVERS", "127.0.0.1:2181").split(",")[0];
        var client = CuratorFrameworkFactory.newClient(server, new RetryOneTime(100));
        client.start();
        var holder = new InterProcessSemaphoreMutex(client, PATH);
        if (!holder.acquire(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the lock is held before the start");
        }
        var waiter = new Thread(() -> {
            try {
                new InterProcessSemaphoreMutex(client, PATH).acquire();
            } catch (Exception interrupted) {
                // The main thread looks at what is left of the waiter.
            }
        });
        waiter.start();
        waitUntilWaiting(client, waiter);
        waiter.interrupt();
        waiter.join(30_000);
        holder.release();
        boolean free = new InterProcessSemaphoreMutex(client, PATH).acquire(10, TimeUnit.SECONDS);
        client.close();
        System.out.printf("Curator %s: after the interrupt of a waiter and the release of the holder, %s.%n", args[0],
                free ? "the lock is free" : "nobody acquires the lock within 10 s");
        System.exit(free ? 0 : 1);
    }

    /** Returns when the thread's node is in the queue and the thread waits for the holder's node. */
    static void waitUntilWaiting(CuratorFramework client, Thread thread) throws Exception {
        while (!waits(thread) || client.getChildren().forPath(PATH + "/leases").size() != 2) {
            Thread.sleep(10);
        }
    }

    /** Returns whether the recipe itself called wait: the client of ZooKeeper waits for its answers too. */
    static boolean waits(Thread thread) {
        return thread.getState() == Thread.State.WAITING && Arrays.stream(thread.getStackTrace())
                .map(StackTraceElement::getClassName).filter(name -> !name.equals("java.lang.Object"))
                .findFirst().orElse("").endsWith(".InterProcessSemaphoreV2");
    }
}
