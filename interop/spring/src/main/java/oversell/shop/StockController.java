package oversell.shop;

import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** GET /check/lock?lock=redisson, curator or none sells one item. GET /stock returns what is left. */
@RestController
class StockController {
    private static final long WAIT_SECONDS = 60;

    private final JdbcTemplate database;
    private final RedissonClient redisson;
    private final CuratorFramework curator;

    StockController(JdbcTemplate database, RedissonClient redisson, CuratorFramework curator) {
        this.database = database;
        this.redisson = redisson;
        this.curator = curator;
    }

    @GetMapping("/check/lock")
    String checkAndLock(@RequestParam(defaultValue = "redisson") String lock) throws Exception {
        switch (lock) {
            case "none" -> deduct();
            case "redisson" -> {
                RLock mutex = redisson.getLock("stock");
                mutex.lock(); // the watchdog renews it
                try {
                    deduct();
                } finally {
                    mutex.unlock();
                }
            }
            case "curator" -> {
                InterProcessMutex mutex = new InterProcessMutex(curator, "/curator/locks/stock");
                if (!mutex.acquire(WAIT_SECONDS, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("waited " + WAIT_SECONDS + " s for the lock");
                }
                try {
                    deduct();
                } finally {
                    mutex.release();
                }
            }
            default -> throw new IllegalArgumentException("lock must be redisson, curator or none: " + lock);
        }
        return "sold with " + lock;
    }

    @GetMapping("/stock")
    int stock() {
        return database.queryForObject("SELECT count FROM db_stock WHERE id = 1", Integer.class);
    }

    /** DANGER: on purpose, this needs the lock: updates between its two statements are lost. */
    private void deduct() {
        int count = stock();
        if (count < 1) {
            throw new IllegalStateException("sold out");
        }
        database.update("UPDATE db_stock SET count = ? WHERE id = 1", count - 1);
    }
}
