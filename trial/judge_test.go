package trial_test

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/trial"
	"oversell/trial/adapter"
)

// TestSelect checks that a hello may claim hazards only. The load can be selected, but nobody can claim it.
func TestSelect(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claimed, selected api.Hazard
		want              string
	}{
		{"pause", "pause", ""},
		{"pause", "load", ""},
		{"load", "pause", "the hello of the adapter: "},
		{"pausee", "pause", "the hello of the adapter: "},
		{"pause", "pausee", "pausee"},
	} {
		j := trial.Judge{Lock: trial.Lock{Hello: adapter.Hello{
			Library: "test", Backends: []string{"redis"}, Protects: []api.Hazard{test.claimed},
		}}}
		err := j.Select([]api.Hazard{test.selected})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("a hello that claims %s, and the hazard %s: %v, want %q", test.claimed, test.selected, err, test.want)
		}
	}
}
