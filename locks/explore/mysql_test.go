package explore

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	dsn := migrated(t)
	for _, s := range strings.Fields(os.Getenv("STRATS")) {
		for _, full := range []bool{false, true} {
			if full && os.Getenv("FULL") == "" {
				continue
			}
			began := time.Now()
			n := 2
			if os.Getenv("THREE") != "" {
				n = 3
			}
			r, err := Search(t.Context(), Trial{Strategy: s, Bounds: Bounds{Clients: n}, Full: full, MySQL: dsn}, nil)
			t.Logf("%s full=%v %.2fs: %d schedules %d redundant %d oversold two=%d %v %v %v", s, full, time.Since(began).Seconds(), r.Schedules, r.Redundant, r.Oversold, r.Two, r.Outcomes, r.Complete, err)
			for _, st := range r.Shortest {
				t.Log("   ", st.Text)
			}
		}
	}
}
