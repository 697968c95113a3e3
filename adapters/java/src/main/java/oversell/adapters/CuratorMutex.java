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
final class CuratorMutex implements Adapter.Library {
    private static final int SESSION = Integer.parseInt(Adapter.env("SESSION_MS", "60000"));
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>(); // a thread acquires again with the same mutex
    private final Set<Held> holders = ConcurrentHashMap.newKeySet();
    private Adapter adapter;
    private CuratorFramework client; // null until the first request

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

    private void changed(ConnectionState state) {
        for (Held held : holders) {
            synchronized (held) {
                held.suspended = state == ConnectionState.SUSPENDED;
                held.lost |= state == ConnectionState.LOST;
                held.notifyAll();
            }
            if (state == ConnectionState.LOST) adapter.lose(held, "the session was lost");
        }
    }

    @Override
    public Adapter.Held acquire(Adapter.Request r) throws Exception {
        InterProcessMutex mutex = mutexes.computeIfAbsent("/curator/" + r.key(), path -> new InterProcessMutex(client(), path));
        Held held = new Held(mutex);
        holders.add(held); // before the grant, so that no loss is missed
        boolean granted = false;
        try {
            granted = mutex.acquire(r.waitMs(), TimeUnit.MILLISECONDS);
        } finally {
            if (!granted) holders.remove(held);
        }
        return granted ? held : null;
    }

    private final class Held implements Adapter.Held {
        private final InterProcessMutex mutex;
        private boolean suspended, lost;

        Held(InterProcessMutex mutex) { this.mutex = mutex; }

        /** Waits for the end of SUSPENDED, which comes within the time-out of the session. */
        @Override
        public synchronized boolean verify() throws InterruptedException {
            if (suspended) wait(SESSION);
            return !suspended && !lost;
        }

        @Override
        public boolean release() throws Exception {
            holders.remove(this);
            mutex.release();
            synchronized (this) { return !lost; }
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
