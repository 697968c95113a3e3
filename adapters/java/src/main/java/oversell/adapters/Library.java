package oversell.adapters;

/** The locks of a library. Acquire and release run in the thread of the owner. */
interface Library {
    /** An acquire. A lease of 0 ms is the default. {@code queued} reports that it waits in a queue. */
    record Request(String key, long waitMs, long leaseMs, boolean renewed, Runnable queued) {}

    /** Returns null if the lock was not acquired within the wait. A cancel interrupts the wait. */
    Held acquire(Request request) throws Exception;

    /** Deletes the key's data in the backend. */
    void clear(String key) throws Exception;

    /**
     * Acquires and releases a lock of its own. The first lock of a program loads many classes, which can
     * take longer than a short lease on a busy machine. A service in use has done this long before.
     */
    default void warmUp() {
        if (System.getenv("LEASE_MS") == null) return; // started for its hello, without servers
        try {
            Held held = acquire(new Request("warm-up-" + ProcessHandle.current().pid(), 0, 0, true, () -> {}));
            if (held != null) held.release();
        } catch (Exception why) { // a server may be away now
            System.err.println("warm-up: " + why);
        }
    }

    /** A lock that was acquired. */
    interface Held {
        /** Returns false if the lock was lost before. */
        boolean release() throws Exception;

        /** Returns whether the lock can still be trusted. Needed only for loss_notice. */
        default boolean verify() throws Exception { return true; }

        /** Returns the fence, or 0. */
        default long fence() { return 0; }
    }
}
