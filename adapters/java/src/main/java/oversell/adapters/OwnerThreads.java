package oversell.adapters;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A thread for each owner, because the locks of Java belong to threads. It ends with the last use. */
final class OwnerThreads {
    private record Owner(ExecutorService thread, int uses) {}

    private final Map<String, Owner> owners = new ConcurrentHashMap<>();

    /** Runs the acquire in the owner's thread. Each begin needs one end. */
    void begin(String owner, Runnable acquire) {
        owners.compute(owner, (name, o) -> o == null ? new Owner(Executors.newSingleThreadExecutor(), 1) : new Owner(o.thread, o.uses + 1))
                .thread.execute(acquire);
    }

    void run(String owner, Runnable release) { owners.get(owner).thread.execute(release); }

    void end(String owner) {
        owners.compute(owner, (name, o) -> {
            if (o.uses > 1) return new Owner(o.thread, o.uses - 1);
            o.thread.shutdown();
            return null;
        });
    }
}
