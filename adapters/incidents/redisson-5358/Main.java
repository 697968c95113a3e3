import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.URI;
import org.redisson.Redisson;
import org.redisson.config.Config;

/**
 * Shows https://github.com/redisson/redisson/issues/5358 on the Redis of REDIS_URL.
 *
 * <p>A thread is interrupted in tryLock while Redis has its request but has not answered. The
 * program exits with 1 if the client then renews a lock that tryLock did not return.
 */
class Main {
    static final URI REDIS = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
    static final String KEY = "incident:redisson-5358";
    static final long LEASE = 1500; // milliseconds; the client renews after a third of it

    public static void main(String[] args) {
        try {
            reproduce(args);
        } catch (Exception e) { // the JVM would end with 1, which means that the report is reproduced
            e.printStackTrace();
            System.exit(2);
        }
    }

    static void reproduce(String[] args) throws Exception {
        var config = new Config();
        config.setLockWatchdogTimeout(LEASE);
        config.useSingleServer().setAddress("redis://" + REDIS.getRawAuthority());
        var redisson = Redisson.create(config);
        redisson.getKeys().delete(KEY);
        var answer = new Object[1];
        var thread = new Thread(() -> {
            try {
                answer[0] = redisson.getLock(KEY).tryLock();
            } catch (RuntimeException e) {
                answer[0] = e;
            }
        });
        try (var redis = new Connection()) {
            int blocked = redis.blockedClients();
            redis.call("CLIENT PAUSE 30000 WRITE"); // Redis keeps the request, and runs it later
            thread.start();
            while (redis.blockedClients() <= blocked) {
                Thread.sleep(10);
            }
            thread.interrupt();
            thread.join(10_000);
            redis.call("CLIENT UNPAUSE");
        }
        if (answer[0] == null || answer[0].equals(true)) {
            throw new IllegalStateException("the interrupted tryLock returned " + answer[0]);
        }
        Thread.sleep(4 * LEASE);
        boolean held = redisson.getKeys().countExists(KEY) > 0;
        redisson.getKeys().delete(KEY);
        redisson.shutdown();
        System.out.printf("Redisson %s: after an interrupt, tryLock %s, and %s.%n",
                Redisson.class.getPackage().getImplementationVersion(),
                answer[0].equals(false) ? "returned false" : "threw an exception",
                held ? "the client holds and renews the lock" : "the lock is free after its lease");
        System.exit(held ? 1 : 0);
    }
}

/** A connection for single commands, so that the pause strikes no answer that this program waits for. */
class Connection implements AutoCloseable {
    private final Socket socket = new Socket(Main.REDIS.getHost(), Main.REDIS.getPort());

    Connection() throws IOException {
        socket.setSoTimeout(20_000);
        if (Main.REDIS.getUserInfo() != null) {
            call("AUTH " + Main.REDIS.getUserInfo().replaceFirst("^[^:]*:", ""));
        }
    }

    /** Sends a command and returns its answer as Redis wrote it, with the length before the text. */
    String call(String command) throws IOException {
        socket.getOutputStream().write((command + "\r\n").getBytes());
        var in = socket.getInputStream();
        var answer = new StringBuilder(line(in));
        if (answer.charAt(0) == '$') {
            answer.append(new String(in.readNBytes(Integer.parseInt(answer.substring(1)) + 2)));
        } else if (answer.charAt(0) == '-') {
            throw new IOException(command + ": " + answer);
        }
        return answer.toString();
    }

    int blockedClients() throws IOException {
        return call("INFO clients").lines().filter(l -> l.startsWith("blocked_clients:"))
                .mapToInt(l -> Integer.parseInt(l.split(":")[1])).findFirst().orElseThrow();
    }

    private static String line(InputStream in) throws IOException {
        var line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new IOException("Redis closed the connection");
            }
            line.append((char) c);
        }
        return line.toString().strip();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
