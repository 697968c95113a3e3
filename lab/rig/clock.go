package rig

import (
	"fmt"
	"os"
	"time"
)

// clockEnv makes a program read its clock's offset from file, each time the program reads its clock. On Linux
// only: with Debian's packages libfaketime and libtcmalloc-minimal4.
func (found programs) clockEnv(file string) []string {
	return []string{
		// Debian's Redis uses jemalloc, which reads the time while libfaketime initialises. libfaketime
		// then needs memory from jemalloc, which is a deadlock. Another allocator avoids the deadlock.
		"LD_PRELOAD=" + found.faketime + ":" + found.malloc,
		"FAKETIME_TIMESTAMP_FILE=" + file,
		"FAKETIME_NO_CACHE=1",
		// Only the time of day jumps, not the monotonic clock, as after a change of the system clock.
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

// SetClock sets the clock of a Redis with Config.Clocks ahead of the machine's clock by offset, or
// behind it for a negative offset. A restart does not change the clock.
func (s *Server) SetClock(offset time.Duration) error {
	if s.clock == "" {
		return fmt.Errorf("rig: set the clock of %s: it has no clock of its own: start the rig with Config.Clocks", s.name)
	}
	// The rename is atomic, because the server may read the file at any time.
	next := s.clock + ".next"
	err := os.WriteFile(next, fmt.Appendf(nil, "%+.3f\n", offset.Seconds()), 0o600)
	if err == nil {
		err = os.Rename(next, s.clock)
	}
	if err != nil {
		return fmt.Errorf("rig: set the clock of %s: %w", s.name, err)
	}
	return nil
}

// removeClockShare removes the shared memory that libfaketime leaves behind after a kill.
func removeClockShare(pid int) {
	for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
		_ = os.Remove(fmt.Sprintf("/dev/shm/%s%d", name, pid))
	}
}
