// A lock in Redis behind the protocol of docs/adapter.md, for Java 17 and later, without packages.
// SET NX PX takes the key, one script deletes it, and another renews it every third of the lease.
import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;

public class Lock {
    static final String HELLO = """
        {"hello":1,"library":"Lock.java","version":"1","language":"Java","backends":["redis"],\
        "capabilities":{"lease":true,"lease_per_request":true,"renewal":true,"loss_notice":true},\
        "protects":["crash","overrun","cutoff","lost-reply"],"breaks":[{"hazard":"pause"},{"hazard":"failover"},\
        {"hazard":"clock-jump"},{"hazard":"nesting"},{"hazard":"polling"}]}""";
    static final String OURS = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call(%s) end return 0";
    static final String RELEASE = OURS.formatted("'del',KEYS[1]"), RENEW = OURS.formatted("'pexpire',KEYS[1],ARGV[2]");
    static final URI REDIS = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379/0"));
    static final Map<String, Lock> locks = new ConcurrentHashMap<>(); // by the id of the acquire

    /** Sends a command on a new connection, which is never used again after a lost answer. */
    static String redis(String... command) throws IOException {
        try (Socket server = new Socket()) {
            server.connect(new InetSocketAddress(REDIS.getHost(), REDIS.getPort()), 1000);
            server.setSoTimeout(1000);
            var answers = new BufferedReader(new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
            var commands = new ArrayList<>(List.of(new String[][] {command}));
            if (REDIS.getUserInfo() != null) {
                String[] user = REDIS.getUserInfo().split(":", 2);
                commands.add(0, new String[] {"AUTH", user[0].isEmpty() ? "default" : user[0], user[1]});
            }
            String line = null;
            for (String[] words : commands) {
                var text = new StringBuilder("*" + words.length + "\r\n");
                for (String w : words) text.append("$" + w.getBytes(StandardCharsets.UTF_8).length + "\r\n" + w + "\r\n");
                server.getOutputStream().write(text.toString().getBytes(StandardCharsets.UTF_8));
                line = answers.readLine();
                if (line == null || line.startsWith("-")) throw new IOException(String.valueOf(line));
            }
            return line; // +OK, $-1 for nil, or :1 for a number
        }
    }

    final String id, name, token = UUID.randomUUID().toString();
    final long lease; // in milliseconds
    final boolean renews;
    final CountDownLatch over = new CountDownLatch(1); // cancelled or released
    volatile long until; // on the clock of System.nanoTime
    volatile String lost = "";

    Lock(Map<String, String> r) {
        id = r.get("id");
        name = "lock:" + r.get("key");
        lease = Long.parseLong(r.getOrDefault("lease_ms", System.getenv().getOrDefault("LEASE_MS", "10000")));
        renews = !r.containsKey("no_renew");
    }

    boolean extend(String... command) throws IOException { // the lease counts from the sending, less 2 % for the clocks
        long sent = System.nanoTime();
        boolean done = Set.of("+OK", ":1").contains(redis(command));
        if (done) until = sent + lease * 980_000;
        return done;
    }

    boolean held() { return lost.isEmpty() && System.nanoTime() < until; }

    boolean acquire(long wait) throws IOException, InterruptedException {
        long end = System.nanoTime() + wait * 1_000_000;
        try {
            while (!extend("SET", name, token, "NX", "PX", "" + lease))
                if (System.nanoTime() >= end || over.await(20, TimeUnit.MILLISECONDS)) return false;
        } catch (IOException why) {
            release(); // the answer may be lost, and the key taken
            throw why;
        }
        start(this::watch);
        return true;
    }

    boolean release() throws IOException {
        over.countDown();
        return redis("EVAL", RELEASE, "1", name, token).equals(":1") && lost.isEmpty();
    }

    Object watch() throws InterruptedException { // renews the lease, and sends lost when it has ended
        while (held() && !over.await(Math.min(lease * 333_333, until - System.nanoTime()), TimeUnit.NANOSECONDS)) {
            try {
                if (renews && !extend("EVAL", RENEW, "1", name, token, "" + lease)) lost = "the key was deleted, or has another value";
            } catch (IOException why) {
                Thread.sleep(100); // the next try may have an answer
            }
        }
        if (over.getCount() > 0) say(id, "lost", ",\"why\":\"" + (lost.isEmpty() ? "the lease has ended" : lost) + "\"");
        return null;
    }

    static void start(Callable<?> work) {
        var thread = new Thread(new FutureTask<>(work));
        thread.setDaemon(true);
        thread.start();
    }

    static synchronized void say(String id, String answer, String more) {
        System.out.println("{\"id\":" + id + ",\"answer\":\"" + answer + "\"" + more + "}");
    }

    static Object serve(Map<String, String> r) throws InterruptedException {
        String id = r.get("id"), of = r.get("of"), answer = "error", more = "";
        try {
            answer = switch (r.get("do")) {
                case "acquire" -> locks.get(id).acquire(Long.parseLong(r.getOrDefault("wait_ms", "0"))) ? "granted" : "not_acquired";
                case "release" -> locks.remove(of).release() ? "released" : "not_held";
                case "verify" -> locks.get(of).held() ? "held" : "not_held";
                default -> redis("DEL", "lock:" + r.get("key")).isEmpty() ? "" : "done"; // clear
            };
        } catch (IOException why) {
            more = ",\"backend\":\"redis\",\"why\":\"redis: " + String.valueOf(why.getMessage()).replaceAll("[\"\\\\]", "'") + "\"";
        }
        if (!answer.equals("granted")) locks.remove(id);
        say(id, answer, more);
        return null;
    }

    public static void main(String[] args) throws IOException {
        System.out.println(HELLO);
        var field = Pattern.compile("\"(\\w+)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([\\w-]+))"); // a request has no nested values
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = requests.readLine()) != null; ) {
            Map<String, String> r = new HashMap<>();
            field.matcher(line).results().forEach(m -> r.put(m.group(1), m.group(2) != null ? m.group(2) : m.group(3)));
            Lock waiting = r.get("do").equals("cancel") ? locks.get(r.get("of")) : null;
            if (waiting != null) waiting.over.countDown();
            if (r.get("do").equals("acquire")) locks.put(r.get("id"), new Lock(r));
            if (!r.get("do").equals("cancel")) start(() -> serve(r));
        }
    }
}
