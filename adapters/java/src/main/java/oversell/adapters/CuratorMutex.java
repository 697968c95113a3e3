package oversell.adapters;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;

/**
 * Curator's InterProcessMutex. As its documentation advises, a listener for the state of the connection
 * notices a loss: a lock is not certain while the state is SUSPENDED, and lost after LOST.
 */
final class CuratorMutex implements Library {
    private static final int SESSION = Integer.parseInt(Adapter.env("SESSION_MS", "60000"));
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>(); // a thread acquires again with the same mutex
    private final Set<Held> holders = ConcurrentHashMap.newKeySet();
    private Adapter adapter;
    private CuratorFramework client; // null until the first request
    private boolean suspended;

    public static void main(String[] args) throws Exception {
        CuratorMutex library = new CuratorMutex();
        library.adapter = new Adapter("zookeeper", """
                "library":"Curator InterProcessMutex","version":"5.9.0","document":"https://curator.apache.org/docs/recipes-shared-reentrant-lock",\
                "capabilities":{"lease":true,"renewal":true,"reentry":true,"loss_notice":true}""", library);
        library.adapter.serve();
    }

    private synchronized CuratorFramework client() {
        if (client == null) {
            client = CuratorFrameworkFactory.builder().connectString(Adapter.env("ZK_SERVERS", "127.0.0.1:2181"))
                    .sessionTimeoutMs(SESSION).retryPolicy(new ExponentialBackoffRetry(1000, 3)).build(); // as the start page shows
            client.getConnectionStateListenable().addListener((same, state) -> changed(state));
            client.start();
        }
        return client;
    }

    private synchronized void changed(ConnectionState state) {
        suspended = state == ConnectionState.SUSPENDED;
        notifyAll();
        if (state != ConnectionState.LOST) return;
        for (Held held : holders) {
            held.lost = true;
            adapter.lose(held, "the session was lost");
        }
    }

    /** Waits for the end of SUSPENDED, which comes within the time-out of the session. */
    private synchronized boolean certain() throws InterruptedException {
        if (suspended) wait(SESSION);
        return !suspended;
    }

    @Override
    public Library.Held acquire(Library.Request r) throws Exception {
        InterProcessMutex mutex = mutexes.computeIfAbsent("/curator/" + r.key(), path -> new InterProcessMutex(client(), path));
        if (!mutex.acquire(r.waitMs(), TimeUnit.MILLISECONDS)) return null;
        Held held = new Held(mutex);
        holders.add(held);
        return held;
    }

    private final class Held implements Library.Held {
        private final InterProcessMutex mutex;
        private volatile boolean lost;

        Held(InterProcessMutex mutex) { this.mutex = mutex; }

        @Override
        public boolean verify() throws InterruptedException { return certain() && !lost; }

        @Override
        public boolean release() throws Exception {
            holders.remove(this);
            mutex.release();
            return !lost;
        }
    }

    @Override
    public void clear(String key) throws Exception {
        try {
            client().delete().deletingChildrenIfNeeded().forPath("/curator/" + key);
        } catch (KeeperException.NoNodeException none) {
            return; // there was no lock
        }
    }
}
