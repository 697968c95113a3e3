package main

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestShareOfOthers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	before := cpuTimes{Busy: 100 * s, Total: 1000 * s}
	for _, test := range []struct {
		name  string
		after cpuTimes
		own   time.Duration
		want  float64
		quiet bool
	}{
		{"all of it was ours", cpuTimes{Busy: 118 * s, Total: 1020 * s}, 18 * s, 0, true},
		{"ticks were rounded against us", cpuTimes{Busy: 118 * s, Total: 1020 * s}, 19 * s, 0, true},
		{"exactly a tenth", cpuTimes{Busy: 112 * s, Total: 1020 * s}, 10 * s, 0.1, true},
		{"more than a tenth", cpuTimes{Busy: 113 * s, Total: 1020 * s}, 10 * s, 0.15, false},
		{"we slept, others worked", cpuTimes{Busy: 110 * s, Total: 1020 * s}, 0, 0.5, false},
		{"no time has passed", before, 0, 0, true},
	} {
		others := shareOfOthers(before, test.after, test.own)
		if math.Abs(others-test.want) > 1e-9 {
			t.Errorf("%s: others took %v, want %v", test.name, others, test.want)
		}
		if err := checkQuiet(others); (err == nil) != test.quiet {
			t.Errorf("%s: checkQuiet = %v, want quiet = %v", test.name, err, test.quiet)
		}
	}
	if err := checkQuiet(0.34); err == nil || !strings.Contains(err.Error(), "other processes took 34 %") {
		t.Errorf("checkQuiet(0.34) = %v, want an error with the share", err)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	cpu := procfs.CPUStat{User: 1, Nice: 0.1, System: 0.5, Idle: 8, Iowait: 0.4, IRQ: 0.05, SoftIRQ: 0.15, Steal: 0.2, Guest: 0.07}
	got := times(cpu)
	want := cpuTimes{Busy: 1800 * time.Millisecond, Total: 10400 * time.Millisecond}
	if got.Busy.Round(time.Millisecond) != want.Busy || got.Total.Round(time.Millisecond) != want.Total {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReadTimes(t *testing.T) {
	t.Parallel()
	times, err := readTimes()
	if (err == nil) != (runtime.GOOS == "linux") {
		t.Errorf("readTimes = %+v, %v on %s", times, err, runtime.GOOS)
	}
	if err == nil && (times.Total <= 0 || times.Busy > times.Total) {
		t.Errorf("readTimes = %+v", times)
	}
}
