package cli

import (
	"strings"
	"testing"

	"oversell/lab/comparison"
	"oversell/lab/measure"
)

// TestTooMuchLoad checks that rates which the load itself limits are refused, and those of a lab elsewhere are not.
func TestTooMuchLoad(t *testing.T) {
	measurements := []comparison.Measurement{
		{Result: measure.Result{Strategy: "redis", Load: 0.1}}, {Result: measure.Result{Strategy: "atomic", Load: 0.4}},
	}
	err := (&runFlags{started: true}).verdict(measurements, nil)
	if err == nil || !strings.Contains(err.Error(), "partly its own: atomic (40 %)") {
		t.Errorf("a load with 40 %% of the cores: %v", err)
	}
	if err := (&runFlags{}).verdict(measurements, nil); err != nil {
		t.Errorf("a lab elsewhere: %v", err)
	}
}
