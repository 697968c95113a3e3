package rig

import "runtime"

// launcher runs functions on one operating system thread that lives until close. Children forked
// on it outlive every other thread of the program, and die with the program: see childAttr.
type launcher struct{ jobs chan func() }

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		// The unlock keeps the thread alive. Other code may have forked a child on this thread before,
		// such as a test's browser, and the child would die with the thread.
		defer runtime.UnlockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

func (l *launcher) do(job func()) {
	done := make(chan struct{})
	l.jobs <- func() { defer close(done); job() }
	<-done
}

// close releases the thread. All children must be dead, and do must not be called again.
func (l *launcher) close() { close(l.jobs) }
