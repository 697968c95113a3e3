package rig

import (
	"runtime"

	"oversell/lab/pin"
)

// launcher runs functions on one operating system thread, which lives until close. A child that is
// forked there dies with the program, and not with any other thread: see childAttr.
type launcher struct {
	jobs  chan func()
	unpin func() // nil without cores
}

// newLauncher returns a launcher whose children run on the cores; without any, on all.
func newLauncher(cores []int) (l *launcher, err error) {
	l = &launcher{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		// A goroutine that ends while it is locked to its thread ends the thread as well. The unlock
		// keeps the thread alive: before the launcher, other code may have forked a child on this thread,
		// such as a test's browser, and that child would die.
		defer runtime.UnlockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	if len(cores) > 0 {
		l.do(func() { l.unpin, err = pin.Thread(cores) })
	}
	return l, err
}

func (l *launcher) do(job func()) {
	done := make(chan struct{})
	l.jobs <- func() { defer close(done); job() }
	<-done
}

// close releases the thread. All children must be dead, and do must not be called again.
func (l *launcher) close() {
	if l.unpin != nil {
		l.do(l.unpin)
	}
	close(l.jobs)
}
