package rig

import "testing"

func TestGroupAndState(t *testing.T) {
	for stat, want := range map[string]struct {
		group int
		state byte
	}{
		"12 (redis-server) S 1 12 12 0 -1":   {12, 'S'},
		"13 (a (b) c) d) Z 1 77 12 0 -1 4 5": {77, 'Z'},
		"":                                   {0, 0},
		"14 (x":                              {0, 0},
	} {
		if group, state := groupAndState([]byte(stat)); group != want.group || state != want.state {
			t.Errorf("%q: %d %c, want %d %c", stat, group, state, want.group, want.state)
		}
	}
}
