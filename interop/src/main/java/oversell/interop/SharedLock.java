package oversell.interop;

import java.time.Duration;

/**
 * A lock as a Java service uses it: named by the key of what is sold, held by a thread, which
 * may take it again. Each method speaks to the library and to nothing else, so that what it
 * does is what the library does.
 */
interface SharedLock extends AutoCloseable {
    /** Waits for the lock; false: not within {@code wait}. */
    boolean acquire(String key, Duration wait) throws Exception;

    /** Gives back one acquisition; throws when this thread has none. */
    void release(String key) throws Exception;

    /** How often this thread holds the lock, as far as the library tells. */
    int count(String key) throws Exception;

    /** The jar of the library, which names its version. */
    Class<?> library();

    @Override
    void close();
}
