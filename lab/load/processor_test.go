package load

import (
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestOthers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	before := Processor{Busy: 100 * s, Total: 1000 * s}
	for _, test := range []struct {
		name  string
		after Processor
		own   time.Duration
		want  float64
	}{
		{"all of it was ours", Processor{Busy: 118 * s, Total: 1020 * s}, 18 * s, 0},
		{"ticks were rounded against us", Processor{Busy: 118 * s, Total: 1020 * s}, 19 * s, 0},
		{"exactly a tenth", Processor{Busy: 112 * s, Total: 1020 * s}, 10 * s, 0.1},
		{"we slept, others worked", Processor{Busy: 110 * s, Total: 1020 * s}, 0, 0.5},
		{"no time has passed", before, 0, 0},
	} {
		if others := test.after.Others(before, test.own); math.Abs(others-test.want) > 1e-9 {
			t.Errorf("%s: others took %v, want %v", test.name, others, test.want)
		}
	}
}

func TestProcessor(t *testing.T) {
	t.Parallel()
	cpu := procfs.CPUStat{User: 1, Nice: 0.1, System: 0.5, Idle: 8, Iowait: 0.4, IRQ: 0.05, SoftIRQ: 0.15, Steal: 0.2, Guest: 0.07}
	got := processorOf(cpu)
	want := Processor{Busy: 1800 * time.Millisecond, Total: 10400 * time.Millisecond}
	if got.Busy.Round(time.Millisecond) != want.Busy || got.Total.Round(time.Millisecond) != want.Total {
		t.Errorf("%+v, want %+v", got, want)
	}
	now, err := ReadProcessor()
	if (err == nil) != (runtime.GOOS == "linux") {
		t.Errorf("%+v, %v on %s", now, err, runtime.GOOS)
	}
	if err == nil && (now.Total <= 0 || now.Busy > now.Total) {
		t.Errorf("%+v", now)
	}
	// The tests of other packages run at the same time as children of `go test`, our parent.
	mine, _, _ := ProcessTimes(os.Getpid())
	own, tree, err := ProcessTimes(os.Getppid())
	if runtime.GOOS == "linux" && (err != nil || tree < own+mine || own < 0) {
		t.Errorf("our parent: %v, with its children %v, of which we took %v: %v", own, tree, mine, err)
	}
}
