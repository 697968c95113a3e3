package oversell.interop;

import java.time.Duration;

/**
 * A re-entrant lock for each key. A thread is the holder. Each method only calls the library, so
 * that the tests show the behavior of the library.
 */
interface SharedLock extends AutoCloseable {
    /** Waits for the lock. Returns false if it was not acquired within {@code wait}. */
    boolean acquire(String key, Duration wait) throws Exception;

    /** Releases one acquisition. Throws an exception if this thread has no acquisition. */
    void release(String key) throws Exception;

    /** Returns the number of acquisitions of this thread, if the library knows it. */
    int count(String key) throws Exception;

    /** Returns a class of the library. The name of the class's jar has the version. */
    Class<?> library();

    @Override
    void close();
}
