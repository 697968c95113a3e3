package oversell.adapters;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;

/**
 * The protocol of docs/adapter.md for locks of Java libraries. These locks belong to threads, so each
 * owner has a thread of its own. A cancel interrupts this thread.
 */
final class Adapter {
    /** An acquire. A lease of 0 ms is the default. */
    record Request(String key, long waitMs, long leaseMs, boolean renewed) {}

    /** The lock of a library. Its methods run in the owner's thread, except for verify and clear. */
    interface Library {
        /** Returns null if the lock was not acquired within the wait. */
        Held acquire(Request request) throws Exception;

        /** Deletes the key's data in the backend. */
        void clear(String key) throws Exception;
    }

    /** A lock that was acquired. */
    interface Held {
        /** Returns false if the lock was lost before. */
        boolean release() throws Exception;

        /** Returns whether the lock can still be trusted. */
        default boolean verify() throws Exception { return true; }

        /** Returns the fence, or 0. */
        default long fence() { return 0; }
    }

    private static final Pattern FIELD = Pattern.compile("\"(\\w+)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([\\w-]+))"); // no nested values
    private final String backend;
    private final Library library;
    private final Map<String, Use> uses = new ConcurrentHashMap<>(); // acquires that wait or hold, by id
    private final Map<String, Owner> owners = new ConcurrentHashMap<>();
    private final ExecutorService others = Executors.newCachedThreadPool();

    /** The thread of an owner, with the number of its acquires. */
    private record Owner(ExecutorService thread, int acquires) {}

    /** An acquire that waits for its lock, or holds it. */
    private static final class Use {
        volatile Held held;
        private Thread waiting;
        private boolean cancelled;

        synchronized void cancel() {
            cancelled = true;
            if (waiting != null) waiting.interrupt();
        }

        synchronized boolean waits(boolean begins) {
            waiting = begins && !cancelled ? Thread.currentThread() : null;
            if (!begins) Thread.interrupted(); // an interrupt that came after the grant
            return !cancelled;
        }
    }

    /** The hello must be sent before any connection. */
    Adapter(String backend, String hello, Library library) {
        this.backend = backend;
        this.library = library;
        System.out.println("{\"hello\":1,\"language\":\"Java\",\"backends\":[\"" + backend + "\"]," + hello + "}");
    }

    /** Sends that the holder has lost its lock. */
    void lose(Held held, String why) {
        uses.forEach((id, use) -> { if (use.held == held) say(id, "lost", ",\"why\":" + quoted(why)); });
    }

    static String env(String name, String otherwise) { return System.getenv().getOrDefault(name, otherwise); }

    private static String quoted(String text) { return '"' + text.replaceAll("[\"\\\\\\p{Cntrl}]", "'") + '"'; }

    private static void say(String id, String answer, String more) {
        System.out.println("{\"id\":" + id + ",\"answer\":\"" + answer + "\"" + more + "}"); // println is synchronized
    }

    /** Answers the requests until the end of the input, and then ends the program. */
    void serve() throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int n = 0;
        for (String line; (line = lines.readLine()) != null; ) {
            n++;
            Map<String, String> r = new HashMap<>();
            FIELD.matcher(line).results().forEach(m -> r.put(m.group(1), m.group(2) != null ? m.group(2) : m.group(3)));
            switch (r.getOrDefault("do", "")) {
                case "cancel" -> { Use use = uses.get(r.get("of")); if (use != null) use.cancel(); }
                case "acquire" -> {
                    uses.put(r.get("id"), new Use());
                    owners.compute(r.get("owner"), (name, o) -> o == null ? new Owner(Executors.newSingleThreadExecutor(), 1) : new Owner(o.thread, o.acquires + 1))
                            .thread.execute(() -> answer(r));
                }
                case "release" -> { if (uses.containsKey(r.get("of"))) owners.get(r.get("owner")).thread.execute(() -> answer(r)); else say(r.get("id"), "not_held", ""); }
                case "verify", "clear" -> others.execute(() -> answer(r));
                default -> { System.err.println("line " + n + ": unknown request " + line); System.exit(1); }
            }
        }
        System.exit(0);
    }

    private void answer(Map<String, String> r) {
        String id = r.get("id"), answer = "error", more = "", doing = r.get("do");
        try {
            answer = switch (doing) {
                case "acquire" -> acquire(r) ? "granted" : "not_acquired";
                case "release" -> uses.remove(r.get("of")).held.release() ? "released" : "not_held";
                case "verify" -> uses.containsKey(r.get("of")) && uses.get(r.get("of")).held.verify() ? "held" : "not_held";
                default -> { library.clear(r.get("key")); yield "done"; }
            };
        } catch (Exception why) { // of the library
            more = ",\"backend\":\"" + backend + "\",\"why\":" + quoted(why.toString());
        }
        if (answer.equals("granted") && uses.get(id).held.fence() > 0) more = ",\"fence\":" + uses.get(id).held.fence();
        boolean over = doing.equals("release") || doing.equals("acquire") && !answer.equals("granted");
        if (over) uses.remove(id);
        if (over) owners.computeIfPresent(r.get("owner"), (name, o) -> { if (o.acquires > 1) return new Owner(o.thread, o.acquires - 1); o.thread.shutdown(); return null; });
        say(id, answer, more);
    }

    private boolean acquire(Map<String, String> r) throws Exception {
        Use use = uses.get(r.get("id"));
        if (!use.waits(true)) return false;
        try {
            long wait = Long.parseLong(r.getOrDefault("wait_ms", "0")), lease = Long.parseLong(r.getOrDefault("lease_ms", "0"));
            use.held = library.acquire(new Request(r.get("key"), wait, lease, !r.containsKey("no_renew")));
            return use.held != null;
        } catch (InterruptedException cancelled) {
            return false;
        } finally {
            use.waits(false);
        }
    }
}
