package rig

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"strings"
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

// SetProgramClock sets the time of day of the programs that a server starts, such as an adapter of a replica, from
// the server's next start on. 0 sets it right again.
func (s *Server) SetProgramClock(offset time.Duration) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.rig.found.faketime == "" {
		return fmt.Errorf("rig: set the clock of the programs of %s: start the rig with Config.Clocks", s.name)
	}
	preload := s.rig.found.faketime
	if offset == 0 {
		preload = ""
	}
	s.env = append(s.env, "LD_PRELOAD="+preload, fmt.Sprintf("FAKETIME=%+.3f", offset.Seconds()),
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1")
	return nil
}

// FollowsProgramClock returns an error unless the programs that a server has started read the clock that
// SetProgramClock set. A Go program asks the kernel, and a static one has no library.
func (s *Server) FollowsProgramClock() error {
	members, _ := groupMembers(s.PID())
	for _, member := range members {
		exe := fmt.Sprintf("/proc/%d/exe", member.PID)
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", member.PID))
		if _, err := buildinfo.ReadFile(exe); member.PID == s.PID() {
			continue
		} else if err == nil || !strings.Contains(string(maps), "libfaketime") {
			return fmt.Errorf("the program %s does not read its clock through the C library, so it cannot be set", member.Comm)
		}
	}
	if len(members) < 2 {
		return fmt.Errorf("%s has started no program", s.name)
	}
	return nil
}

// removeClockShare removes the shared memory that libfaketime leaves behind after a kill.
func removeClockShare(pid int) {
	for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
		_ = os.Remove(fmt.Sprintf("/dev/shm/%s%d", name, pid))
	}
}
