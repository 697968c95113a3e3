import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.connection.StandardConnectionHandlingPolicy;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/**
 * Shows https://issues.apache.org/jira/browse/CURATOR-498 on the first server of ZK_SERVERS.
 *
 * <p>A client creates its node, and its connection breaks before the answer. The client gives up its
 * session and connects with a new one, while the node of the old session still exists. The program
 * exits with 1 if the client takes this node for its own: the old session ends, and a second client
 * acquires the lock while the first still holds it. The argument is the version of Curator.
 */
class Main {
    static final int SESSION_MS = 12_000;

    public static void main(String[] args) {
        try {
            reproduce(args);
        } catch (Exception e) { // the JVM would end with 1, which means that the report is reproduced
            e.printStackTrace();
            System.exit(2);
        }
    }

    static void reproduce(String[] args) throws Exception {
        String path = "/incident-curator-498-" + args[0];
        String server = System.getenv().getOrDefault("ZK_SERVERS", "127.0.0.1:2181").split(",")[0];
        var line = new Line(server);
        CuratorFramework one = connect("127.0.0.1:" + line.listener.getLocalPort()), two = connect(server);
        two.create().creatingParentContainersIfNeeded().forPath(path);
        var lost = new CountDownLatch(1);
        one.getConnectionStateListenable().addListener((client, state) -> {
            if (state == ConnectionState.LOST) {
                lost.countDown();
            }
        });
        one.blockUntilConnected();
        var held = new CountDownLatch(1);
        var holder = new Thread(() -> {
            try {
                new InterProcessMutex(one, path).acquire();
                held.countDown();
                Thread.sleep(Long.MAX_VALUE); // the owner of Curator's lock is a thread
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(2);
            }
        });
        holder.setDaemon(true);

        long old = session(one);
        line.answers = false;
        holder.start();
        while (two.getChildren().forPath(path).isEmpty()) {
            Thread.sleep(10);
        }
        line.cut();
        await(lost, "the client did not give up its session");
        while (session(one) == old) { // the end of the old session must not reach the server
            Thread.sleep(10);
        }
        line.mend(old);
        await(held, "the first client did not acquire the lock");

        boolean acquired = new InterProcessMutex(two, path).acquire(2 * SESSION_MS, TimeUnit.MILLISECONDS);
        System.out.printf("Curator %s: a second client %s.%n", args[0], acquired
                ? "acquired the lock when the first client's old session ended, while the first held the lock"
                : "did not acquire the lock after the first client's old session had ended");
        System.exit(acquired ? 1 : 0);
    }

    static void await(CountDownLatch latch, String otherwise) throws InterruptedException {
        if (!latch.await(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException(otherwise);
        }
    }

    static long session(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    /** Connects a client that gives up its session after a quarter of its time-out, a setting of Curator. */
    static CuratorFramework connect(String server) {
        var client = CuratorFrameworkFactory.builder().connectString(server).sessionTimeoutMs(SESSION_MS)
                .connectionHandlingPolicy(new StandardConnectionHandlingPolicy(25)).retryPolicy(new RetryNTimes(300, 100)).build();
        client.start();
        return client;
    }

    /**
     * Line forwards connections to the server, but none of a session that was given up: ZooKeeper's client up to
     * 3.5.4 may connect once more when it is closed before a try, and would keep its session alive.
     */
    static class Line {
        final ServerSocket listener = new ServerSocket(0);
        final Set<Socket> open = ConcurrentHashMap.newKeySet();
        volatile boolean answers = true, whole = true;
        volatile long ended = -1;

        Line(String server) throws IOException {
            String[] address = server.split(":");
            daemon(() -> {
                while (true) {
                    Socket client = listener.accept();
                    if (!whole) {
                        client.close();
                        continue;
                    }
                    open.add(client);
                    byte[] request = client.getInputStream().readNBytes(28); // it ends with the session
                    if (request.length < 28 || ByteBuffer.wrap(request).getLong(20) == ended) {
                        client.close();
                        continue;
                    }
                    var target = new Socket(address[0], Integer.parseInt(address[1]));
                    open.add(target);
                    target.getOutputStream().write(request);
                    daemon(() -> copy(client, target, false));
                    daemon(() -> copy(target, client, true));
                }
            });
        }

        void copy(Socket from, Socket to, boolean answer) throws IOException {
            var buffer = new byte[1 << 16];
            try (from; to) {
                for (int n; (n = from.getInputStream().read(buffer)) >= 0; ) {
                    if (answers || !answer) {
                        to.getOutputStream().write(buffer, 0, n);
                    }
                }
            }
        }

        void cut() throws IOException {
            whole = false;
            for (Socket s : open) {
                s.close();
            }
        }

        void mend(long session) {
            ended = session;
            answers = true;
            whole = true;
        }

        interface Work {
            void run() throws IOException;
        }

        static void daemon(Work work) {
            var thread = new Thread(() -> {
                try {
                    work.run();
                } catch (IOException e) {
                    // The other side has closed the connection.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }
}
