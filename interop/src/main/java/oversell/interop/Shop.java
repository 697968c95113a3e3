package oversell.interop;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Shop sells items. Its critical section reads the count of the row and writes a lower count. */
final class Shop {
    private static final Duration WAIT = Duration.ofSeconds(60);

    private final SharedLock lock;
    private final String database;

    /** The last count that this process wrote, under the lock. MIN_VALUE means no count yet. */
    private int written = Integer.MIN_VALUE;

    /** The number of times that this process found a count from another process. */
    private int turns;

    Shop(SharedLock lock, String database) {
        this.lock = lock;
        this.database = database;
    }

    /** Sells {@code pieces} items in each of {@code threads} threads, and returns {@code turns}. */
    int sell(String key, int pieces, int threads) throws Exception {
        written = Integer.MIN_VALUE;
        turns = 0;
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Callable<Void>> sellers = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                sellers.add(() -> sellMany(key, pieces));
            }
            for (Future<Void> seller : pool.invokeAll(sellers)) {
                seller.get();
            }
        } finally {
            pool.shutdownNow();
        }
        return turns;
    }

    private Void sellMany(String key, int pieces) throws Exception {
        long product = Long.parseLong(key.substring(key.indexOf(':') + 1));
        try (Connection connection = DriverManager.getConnection(database)) {
            for (int i = 0; i < pieces; i++) {
                if (!lock.acquire(key, WAIT)) {
                    throw new IllegalStateException("waited " + WAIT + " for " + key);
                }
                try {
                    sellOne(connection, product);
                } finally {
                    lock.release(key);
                }
            }
        }
        return null;
    }

    /** DANGER: on purpose, this needs the lock: updates between its two statements are lost. */
    private void sellOne(Connection connection, long product) throws SQLException {
        int count = read(connection, product);
        if (count < 1) {
            throw new IllegalStateException("sold out at " + count);
        }
        try (PreparedStatement write = connection.prepareStatement("UPDATE db_stock SET count = ? WHERE id = ?")) {
            write.setInt(1, count - 1);
            write.setLong(2, product);
            write.executeUpdate();
        }
        if (written != Integer.MIN_VALUE && count != written) {
            turns++;
        }
        written = count - 1;
    }

    private static int read(Connection connection, long product) throws SQLException {
        try (PreparedStatement read = connection.prepareStatement("SELECT count FROM db_stock WHERE id = ?")) {
            read.setLong(1, product);
            try (ResultSet row = read.executeQuery()) {
                if (!row.next()) {
                    throw new IllegalStateException("no product " + product);
                }
                return row.getInt(1);
            }
        }
    }
}
