package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is the number of requests per second of an open loop. The zero Rate means a closed loop.
type Rate float64

const (
	minRate = Rate(1) / 60
	maxRate = Rate(100_000)
)

// lead is the first due time, and leaves time to start all clients. A 0 means a closed loop.
const lead = 10 * time.Millisecond

// ParseRate reads a rate such as 2000/s or 90/m.
func ParseRate(text string) (Rate, error) {
	number, unit, _ := strings.Cut(text, "/")
	seconds, ok := map[string]float64{"s": 1, "m": 60}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if r := Rate(n / seconds); ok && err == nil && r.valid() {
		return r, nil
	}
	return 0, fmt.Errorf("rate %q: must be a number per second or minute, such as 2000/s or 90/m, from 1/m to %.0f/s", text, maxRate)
}

// valid reports whether the rate is within its limits. NaN is not valid.
func (r Rate) valid() bool { return r >= minRate && r <= maxRate }

// String formats the rate as ParseRate reads it.
func (r Rate) String() string {
	if perSecond := float64(r); perSecond >= 10 || perSecond == math.Trunc(perSecond) {
		return strconv.FormatFloat(perSecond, 'g', 6, 64) + "/s"
	}
	return strconv.FormatFloat(float64(r)*60, 'g', 6, 64) + "/m"
}

// due returns the due time, since the start of the run, of the request after sent requests.
func (r Rate) due(sent int) time.Duration {
	return lead + time.Duration(float64(sent)/float64(r)*float64(time.Second))
}
