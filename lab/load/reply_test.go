package load

import (
	"testing"

	"oversell/lab/history"
)

func TestJudgeKeepsRemaining(t *testing.T) {
	tests := []struct {
		status int
		body   string
		left   int
		has    bool
	}{
		{200, `{"outcome":"sold","remaining":4999}`, 4999, true},
		{200, `{"outcome":"sold","remaining":0}`, 0, true},
		{200, `{"outcome":"sold"}`, 0, false},
		{409, `{"outcome":"sold_out","remaining":3}`, 0, false}, // not a sale
		{500, `{"outcome":"sold","remaining":3}`, 0, false},
	}
	for _, tt := range tests {
		var op history.Op
		recordAnswer(&op, tt.status, []byte(tt.body))
		if op.Remaining != tt.left || op.HasRemaining != tt.has {
			t.Errorf("%d %s: %d remaining, has %v; want %d, %v", tt.status, tt.body, op.Remaining, op.HasRemaining, tt.left, tt.has)
		}
	}
}
