package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is how many requests are due in a second, whatever becomes of those before: an
// open loop. The zero Rate is a closed loop's, whose clients wait for their answers.
type Rate float64

// The bounds of a rate.
const (
	minRate = Rate(1) / 60
	maxRate = Rate(100_000)
)

// lead is when the first request is due: the clients are at their places by then. A due
// time is never 0, which stands for none.
const lead = 10 * time.Millisecond

// ParseRate reads a rate such as 2000/s or 90/m.
func ParseRate(text string) (Rate, error) {
	number, unit, _ := strings.Cut(text, "/")
	seconds, ok := map[string]float64{"s": 1, "m": 60}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if r := Rate(n / seconds); ok && err == nil && r.valid() {
		return r, nil
	}
	return 0, fmt.Errorf("rate %q: want one such as 2000/s or 90/m, from 1/m to %.0f/s", text, maxRate)
}

// valid is false of what is no number, too.
func (r Rate) valid() bool { return r >= minRate && r <= maxRate }

// String is such as 2000/s or 90/m.
func (r Rate) String() string {
	if perSecond := float64(r); perSecond >= 10 || perSecond == math.Trunc(perSecond) {
		return strconv.FormatFloat(perSecond, 'g', 6, 64) + "/s"
	}
	return strconv.FormatFloat(float64(r)*60, 'g', 6, 64) + "/m"
}

// due is when the request after so many others is due, since the start.
func (r Rate) due(sent int) time.Duration {
	return lead + time.Duration(float64(sent)/float64(r)*float64(time.Second))
}

// wait is how long it is until the next request is due; not above 0: it is due already,
// as are all that a late sender finds when it wakes.
func (r Rate) wait(elapsed time.Duration, sent int) time.Duration {
	return r.due(sent) - elapsed
}
