package oversell.adapters;

/** An acquire that waits for its lock, or holds it. */
final class Use {
    volatile Library.Held held;
    private Thread waiting;
    private boolean cancelled;

    synchronized void cancel() {
        cancelled = true;
        if (waiting != null) waiting.interrupt();
    }

    synchronized boolean begin() {
        if (!cancelled) waiting = Thread.currentThread();
        return !cancelled;
    }

    synchronized void end() {
        waiting = null;
        Thread.interrupted(); // a cancel that came after the grant
    }

    synchronized void queued(String id) { // not after the final answer
        if (waiting != null) Adapter.say(id, "queued", "");
    }
}
