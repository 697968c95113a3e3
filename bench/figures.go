package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// figures are the results of one measurement.
type figures struct {
	perSecond, p50, p99, most float64 // times are in milliseconds
	each                      float64 // backend requests for each grant, or failures for each sale
	fairness                  float64 // Jain's index over the processes, in the median second
	lost, failed, sold        int
}

func rate(f figures) float64     { return f.perSecond }
func p50(f figures) float64      { return f.p50 }
func p99(f figures) float64      { return f.p99 }
func most(f figures) float64     { return f.most }
func each(f figures) float64     { return f.each }
func fairness(f figures) float64 { return f.fairness }

func values(all []figures, of func(figures) float64) []float64 {
	sorted := make([]float64, len(all))
	for i, f := range all {
		sorted[i] = of(f)
	}
	slices.Sort(sorted)
	return sorted
}

func median(all []figures, of func(figures) float64) float64 { return values(all, of)[len(all)/2] }

// ranged formats the median, with the lowest and the highest value in brackets.
func ranged(all []figures, of func(figures) float64, digits int) string {
	sorted := values(all, of)
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, median(all, of), digits, sorted[0], digits, sorted[len(sorted)-1])
}

// figuresOf computes the figures from the sales of all processes. length is 0 if the measurement
// ended after a number of sales.
func figuresOf(processes [][]sale, length time.Duration) figures {
	all := slices.Concat(processes...)
	if len(all) == 0 {
		return figures{}
	}
	first, last := int64(math.MaxInt64), int64(0)
	took := make([]time.Duration, len(all))
	for i, s := range all {
		first, last, took[i] = min(first, s.Sold), max(last, s.Sold), s.Took
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return figures{
		perSecond: float64(len(all)) / max(time.Duration(last-first), length).Seconds(), sold: len(all),
		p50: ms(took[len(took)/2]), p99: ms(took[len(took)*99/100]), most: ms(took[len(took)-1]),
		fairness: jain(processes, first, length),
	}
}

// jain returns Jain's index, (sum x)^2 / (n sum x^2), where x is a process's number of sales in one
// second. The result is the median over the complete seconds.
func jain(processes [][]sale, first int64, length time.Duration) float64 {
	var seconds []float64
	for from := first; from+int64(time.Second) <= first+int64(length); from += int64(time.Second) {
		var sum, squares float64
		for _, sales := range processes {
			var n float64
			for _, s := range sales {
				if s.Sold >= from && s.Sold < from+int64(time.Second) {
					n++
				}
			}
			sum, squares = sum+n, squares+n*n
		}
		if squares > 0 {
			seconds = append(seconds, sum*sum/(float64(len(processes))*squares))
		}
	}
	if len(seconds) == 0 {
		return 0
	}
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}
