package report

import (
	"math"
	"testing"

	"oversell/lab/measure"
)

func TestRatesOfTheLastBucket(t *testing.T) {
	s := measure.Series{BucketMS: 100, EndMS: 250}
	if got := rates(s, []int{10, 20, 5}); got[0] != 100 || got[1] != 200 || got[2] != 100 {
		t.Errorf("half a bucket: %v", got)
	}
	s.EndMS = 201 // one answer in one millisecond is not a thousand a second
	if got := rates(s, []int{10, 20, 1}); math.Abs(got[2]-21/0.101) > 1e-9 {
		t.Errorf("a sliver of a bucket: %v", got)
	}
}
