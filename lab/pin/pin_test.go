package pin

import (
	"slices"
	"testing"
)

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ cores, servers, load []int }{
		{[]int{0}, nil, nil},
		{[]int{0, 1}, nil, nil},
		{[]int{0, 1, 2}, []int{0, 1}, []int{2}},
		{[]int{4, 5, 6, 7}, []int{4, 5, 6}, []int{7}},
		{[]int{0, 1, 2, 3, 8, 9, 10, 11}, []int{0, 1, 2, 3, 8, 9}, []int{10, 11}},
	} {
		if servers, load := divide(test.cores); !slices.Equal(servers, test.servers) || !slices.Equal(load, test.load) {
			t.Errorf("%v: servers %v, load %v", test.cores, servers, load)
		}
	}
}
