package load

import (
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]struct {
		rate Rate
		name string
	}{
		"2000/s":   {2000, "2000/s"},
		"90/m":     {1.5, "90/m"},
		"120/m":    {2, "2/s"},
		"1/m":      {minRate, "1/m"},
		"100000/s": {maxRate, "100000/s"},
		"2.5/s":    {2.5, "150/m"},
		"33.5/s":   {33.5, "33.5/s"},
	} {
		if got, err := ParseRate(text); err != nil || got != want.rate || got.String() != want.name {
			t.Errorf("%q gives %v (%v), %v, want %v", text, got, float64(got), err, want)
		}
	}
	for _, text := range []string{
		"", "0", "0/s", "-5/s", "abc", "2000", "/s", "5/", "5/h", "5/ms", "5/s/s", " 5/s", "5 /s", "Inf/s", "NaN/s", "-0/s", "1e99/s", "100001/s", "0.5/m",
	} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q gives %v, want an error", text, got)
		}
	}
}

// TestSchedule checks that due times depend on the rate alone. After a delay, all requests that
// became due in the meantime are sent without a wait.
func TestSchedule(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		rate    Rate
		elapsed time.Duration
		sent    int
		want    time.Duration
	}{
		{2000, 0, 0, lead},
		{2000, lead, 0, 0},
		{2000, lead, 1, ms / 2},
		{2000, lead + ms/4, 1, ms / 4},
		{2000, lead + 10*ms, 20, 0},            // 10 ms late: the 20 requests after the first ...
		{2000, lead + 10*ms, 1, -10*ms + ms/2}, // ... are due
		{2000, lead + 10*ms, 21, ms / 2},       // the next one is due in time
		{2000, lead + time.Hour, 7_200_000, 0}, // and after an hour there is no drift
		{0.5, lead, 1, 2 * time.Second},
		{3, lead + time.Second, 3, 0}, // thirds of a second add up without an error
	} {
		if got := tt.rate.due(tt.sent) - tt.elapsed; got != tt.want {
			t.Errorf("%v, %v after the start, %d sent: waits %v, want %v", tt.rate, tt.elapsed, tt.sent, got, tt.want)
		}
	}
}
