package oversell.interop;

import java.time.Duration;

/**
 * A re-entrant lock with a key, held by a thread. Each method only calls the library, so that the
 * tests show the behavior of the library.
 */
interface SharedLock extends AutoCloseable {
    /** Waits for the lock. Returns false if it was not acquired within {@code wait}. */
    boolean acquire(String key, Duration wait) throws Exception;

    /** Releases one acquisition. Throws if this thread has none. */
    void release(String key) throws Exception;

    /** Returns the number of acquisitions of this thread, if the library knows it. */
    int count(String key) throws Exception;

    /** Returns the name of the library's jar, which has the version. */
    Class<?> library();

    @Override
    void close();
}
