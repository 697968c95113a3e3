package rig

import "testing"

func TestCommandLength(t *testing.T) {
	t.Parallel()
	del := "*2\r\n$3\r\ndel\r\n$4\r\nlock\r\n"
	for data, want := range map[string]int{
		"": 0, "*2\r\n$3\r\ndel": 0, del[:len(del)-1]: 0,
		del: len(del), del + "*1\r\n$4\r\nPING\r\n": len(del),
		"PING\r\n": 6, "tail of a value\r\n*1": 19, "*1\r\n$x\r\n": 8,
	} {
		if got := commandLength([]byte(data)); got != want {
			t.Errorf("%q: %d, want %d", data, got, want)
		}
	}
	if got := commandName([]byte(del)); got != "DEL" {
		t.Errorf("the name of %q is %q", del, got)
	}
}
