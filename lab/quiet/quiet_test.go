package quiet

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestOthers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	before := Times{Busy: 100 * s, Total: 1000 * s}
	for _, test := range []struct {
		name  string
		after Times
		own   time.Duration
		want  float64
		quiet bool
	}{
		{"all of it was ours", Times{Busy: 118 * s, Total: 1020 * s}, 18 * s, 0, true},
		{"ticks were rounded against us", Times{Busy: 118 * s, Total: 1020 * s}, 19 * s, 0, true},
		{"exactly a tenth", Times{Busy: 112 * s, Total: 1020 * s}, 10 * s, 0.1, true},
		{"more than a tenth", Times{Busy: 113 * s, Total: 1020 * s}, 10 * s, 0.15, false},
		{"we slept, others worked", Times{Busy: 110 * s, Total: 1020 * s}, 0, 0.5, false},
		{"no time has passed", before, 0, 0, true},
	} {
		others := Others(before, test.after, test.own)
		if math.Abs(others-test.want) > 1e-9 {
			t.Errorf("%s: others took %v, want %v", test.name, others, test.want)
		}
		if err := Check(others); (err == nil) != test.quiet {
			t.Errorf("%s: Check = %v, want quiet = %v", test.name, err, test.quiet)
		}
	}
	if err := Check(0.34); err == nil || !strings.Contains(err.Error(), "other processes took 34 %") {
		t.Errorf("Check(0.34) = %v, want an error with the share", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse("cpu  100 10 50 800 40 5 15 20 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n")
	if want := (Times{Busy: 1800 * time.Millisecond, Total: 10400 * time.Millisecond}); err != nil || got != want {
		t.Errorf("parse = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("parse(%q) succeeded", bad)
		}
	}
}

func TestNow(t *testing.T) {
	t.Parallel()
	times, err := Now()
	if (err == nil) != (runtime.GOOS == "linux") {
		t.Errorf("Now = %+v, %v on %s", times, err, runtime.GOOS)
	}
	if err == nil && (times.Total <= 0 || times.Busy > times.Total) {
		t.Errorf("Now = %+v", times)
	}
}
