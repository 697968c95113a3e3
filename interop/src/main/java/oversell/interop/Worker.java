package oversell.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ExecutionException;

/**
 * A Java program that executes one command for each line of its input, and answers with one line.
 * One thread executes all commands. The program ends when its input ends.
 *
 * <pre>
 *   SERVER=redis://:password@127.0.0.1:6379 JDBC_URL=... Worker redis LEASE_MS
 *   SERVER=127.0.0.1:2181                   JDBC_URL=... Worker zk    LEASE_MS
 *
 *                            ready LIBRARY.jar java VERSION
 *   acquire KEY WAIT_MS      granted | timeout
 *   release KEY              released
 *   count KEY                the number of acquisitions by the program's thread
 *   deduct KEY N THREADS     the number of times that another process sold in between
 * </pre>
 *
 * After a failure, the answer begins with "error".
 */
final class Worker {
    private final SharedLock lock;
    private final Shop shop;

    private Worker(SharedLock lock, Shop shop) {
        this.lock = lock;
        this.shop = shop;
    }

    public static void main(String[] args) {
        try (SharedLock lock = open(args[0], System.getenv("SERVER"), Duration.ofMillis(Long.parseLong(args[1])))) {
            Path jar = Path.of(lock.library().getProtectionDomain().getCodeSource().getLocation().toURI());
            say("ready " + jar.getFileName() + " java " + System.getProperty("java.version"));
            new Worker(lock, new Shop(lock, System.getenv("JDBC_URL"))).serve();
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static SharedLock open(String kind, String address, Duration lease) throws Exception {
        return switch (kind) {
            case "redis" -> new OnRedisson(address, lease);
            case "zk" -> new OnCurator(address, lease);
            default -> throw new IllegalArgumentException("redis or zk, not " + kind);
        };
    }

    private void serve() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            say(answer(line.split(" ")));
        }
    }

    private String answer(String[] words) {
        try {
            return switch (words[0]) {
                case "acquire" -> lock.acquire(words[1], Duration.ofMillis(Long.parseLong(words[2]))) ? "granted" : "timeout";
                case "release" -> {
                    lock.release(words[1]);
                    yield "released";
                }
                case "count" -> String.valueOf(lock.count(words[1]));
                case "deduct" -> {
                    int pieces = Integer.parseInt(words[2]);
                    int threads = Integer.parseInt(words[3]);
                    int turns = shop.sell(words[1], pieces, threads);
                    yield "sold " + pieces * threads + " " + turns;
                }
                default -> "error: no command " + words[0];
            };
        } catch (ExecutionException e) {
            return error(e.getCause());
        } catch (Exception e) {
            return error(e);
        }
    }

    private static String error(Throwable e) {
        return ("error: " + e).replace('\n', ' ').replace('\r', ' ');
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
