package oversell.adapters;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

/** The protocol of docs/adapter.md for locks of Java libraries. */
final class Adapter {
    private static final Pattern FIELD = Pattern.compile("\"(\\w+)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([\\w-]+))"); // no nested values
    private final String backend;
    private final Library library;
    private final Map<String, Use> uses = new ConcurrentHashMap<>(); // by the id of the acquire
    private final OwnerThreads owners = new OwnerThreads();
    private final ExecutorService others = Executors.newCachedThreadPool();
    private final Future<?> warm;

    /** Sends the hello, before any connection. */
    Adapter(String backend, String hello, Library library) {
        this.backend = backend;
        this.library = library;
        System.out.println("{\"hello\":1,\"language\":\"Java\",\"backends\":[\"" + backend + "\"]," + hello + "}");
        warm = others.submit(library::warmUp);
    }

    /** Sends that the holder has lost its lock. */
    void lose(Library.Held held, String why) {
        uses.forEach((id, use) -> { if (use.held == held) say(id, "lost", ",\"why\":" + quoted(why)); });
    }

    static String env(String name, String otherwise) { return System.getenv().getOrDefault(name, otherwise); }

    private static String quoted(String text) { return '"' + text.replaceAll("[\"\\\\\\p{Cntrl}]", "'") + '"'; }

    static void say(String id, String answer, String more) {
        System.out.println("{\"id\":" + id + ",\"answer\":\"" + answer + "\"" + more + "}"); // println is synchronized
    }

    /** Answers the requests until the end of the input, and then ends the program. */
    void serve() throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int n = 1;
        for (String line; (line = lines.readLine()) != null; n++) {
            Map<String, String> r = new HashMap<>();
            FIELD.matcher(line).results().forEach(m -> r.put(m.group(1), m.group(2) != null ? m.group(2) : m.group(3)));
            Use of = r.containsKey("of") ? uses.get(r.get("of")) : null;
            switch (r.getOrDefault("do", "")) {
                case "cancel" -> { if (of != null) of.cancel(); }
                case "acquire" -> { uses.put(r.get("id"), new Use()); owners.begin(r.get("owner"), () -> answer(r, uses.get(r.get("id")))); }
                case "release" -> { if (of == null) say(r.get("id"), "not_held", ""); else owners.run(r.get("owner"), () -> answer(r, of)); }
                case "verify", "clear" -> others.execute(() -> answer(r, of));
                default -> { System.err.println("line " + n + ": unknown request " + line); System.exit(1); }
            }
        }
        System.exit(0);
    }

    private void answer(Map<String, String> r, Use use) {
        String id = r.get("id"), answer = "error", more = "", doing = r.get("do");
        try {
            answer = switch (doing) {
                case "acquire" -> acquire(r, use) ? "granted" : "not_acquired";
                case "release" -> use.held.release() ? "released" : "not_held";
                case "verify" -> use != null && use.held.verify() ? "held" : "not_held";
                default -> { library.clear(r.get("key")); yield "done"; }
            };
        } catch (Exception why) { // of the library
            more = ",\"backend\":\"" + backend + "\",\"why\":" + quoted(why.toString());
        }
        if (answer.equals("granted") && use.held.fence() > 0) more = ",\"fence\":" + use.held.fence();
        if (doing.equals("release") || doing.equals("acquire") && !answer.equals("granted")) {
            uses.remove(doing.equals("release") ? r.get("of") : id);
            owners.end(r.get("owner"));
        }
        say(id, answer, more);
    }

    private void awaitWarmUp() throws InterruptedException {
        try {
            warm.get(3, TimeUnit.SECONDS); // less than the 5 s in which an answer must come
        } catch (ExecutionException | TimeoutException cold) {
            return; // the server may be away
        }
    }

    private boolean acquire(Map<String, String> r, Use use) throws Exception {
        if (!use.begin()) return false;
        try {
            awaitWarmUp();
            use.held = library.acquire(new Library.Request(r.get("key"), Long.parseLong(r.getOrDefault("wait_ms", "0")),
                    Long.parseLong(r.getOrDefault("lease_ms", "0")), !r.containsKey("no_renew"), () -> use.queued(r.get("id"))));
            return use.held != null;
        } catch (InterruptedException cancelled) {
            return false;
        } finally {
            use.end();
        }
    }
}
