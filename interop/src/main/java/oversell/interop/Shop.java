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

/** The critical section: read the count of the row, then write a count that is lower by one. */
final class Shop {
    private static final Duration WAIT = Duration.ofSeconds(60);

    private final SharedLock lock;
    private final String database;

    /** The count that this process wrote last, under the lock. MIN_VALUE means that it has written none. */
    private int written = Integer.MIN_VALUE;

    /** The number of times that another process had sold since then. */
    private int turns;

    Shop(SharedLock lock, String database) {
        this.lock = lock;
        this.database = database;
    }

    /** Sells {@code pieces} items in each of {@code threads}. Returns how often another process sold in between. */
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

    /** DANGER: these are two statements, on purpose. Without the lock, updates are lost between them. */
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
