package ladder_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/lab/history"
	"oversell/view/ladder"
)

// TestCause checks the sentences that explain a run, and that the picture draws the end of a lease
// exactly if the lock ended before its holder released it.
func TestCause(t *testing.T) {
	unlocked := recordingOf(t, "0 replica-1 o1 read", "5 replica-1 o2 read", "6 replica-1 o2 writing", "8 replica-1 o2 written", "20 replica-1 o1 writing", "22 replica-1 o1 written")
	unlocked.Stock = 10
	unlocked.Ops = []history.Op{sold("replica-1", 0, 30, 9), sold("replica-1", 4, 10, 9)}
	notRenewed := paused(t)
	notRenewed.Renews, notRenewed.Spans = false, nil
	failover := paused(t)
	failover.Spans = []history.Span{{What: "failover", Who: "redis-1", From: 1050 * ms, To: 5490 * ms}}
	old := paused(t)
	old.Lease = 0
	unknown := paused(t)
	unknown.Lease, unknown.Spans = 0, nil
	clocks := paused(t)
	clocks.Lease, clocks.Spans = 0, []history.Span{{What: "clock jumps by 10s", Who: "replica-2", From: 1050 * ms, To: 5490 * ms}}
	foreign := paused(t)
	foreign.Lease, foreign.Spans = 0, nil
	foreign.Events = slices.Insert(foreign.Events, len(foreign.Events)-6, history.Event{Replica: "replica-3", Step: "released", Key: foreign.Events[0].Key, Owner: "o0", At: 3009 * ms})
	fenced := paused(t)
	fenced.Ops[0] = failed("replica-1", 1000, 5520, history.Refused, "fenced")
	fenced.Events = append(fenced.Events[:8], fenced.Events[9:]...) // without the late write
	crash := killed(t)
	crash.Ops[1].Reason = history.NotAcquired
	tests := []struct {
		name   string
		rec    history.Recording
		lapses bool
		en, zh string
	}{
		{"paused", paused(t), true, "The lease of A ended at 3.003 s, while its process was frozen, and B acquired the lock at 3.010 s. " +
			"A still believed that it held the lock, and wrote at 4.500 s. Lost update: 2 sold, 1 taken from stock.", "A 的租期在 3.003 秒结束（期间进程停顿），B 在 3.010 秒拿到锁。"},
		{"not renewed", notRenewed, true, "before its work was finished", "工作还没做完"},
		{"failover", failover, true, "The lock of A was lost on its server, and B acquired it at 3.010 s.", "A 的锁在服务器上丢失"},
		{"a session", old, false, "The server ended the session of A (process frozen), and B acquired the lock at 3.010 s.", "服务器结束了 A 的会话"},
		{"nothing recorded", unknown, false, "B acquired the lock at 3.010 s although A had not released it.", "A 还没有释放锁，B 就拿到了锁。"},
		{"clocks", clocks, false, "After a jump of the clock of replica-2 by 10s, B acquired the lock of A at 3.010 s.", "replica-2 的时钟跳了 10s"},
		{"another release", foreign, false, "had released a lock, ", "释放锁之后，"},
		{"fenced", fenced, true, "The late write of A was refused: its fencing token 7 is older than 8, the token of B.", "它的栅栏号 7 比 B 的 8 旧"},
		{"no lock", unlocked, false, "A and B both read the stock before the other had written it, so the write of A overwrote that of B.", "A 的写入覆盖了 B 的写入"},
		{"crash", crash, false, "A died while it held the lock, and nothing released it: B waited 8.005 s in vain.", "B 白等了 8.005 秒"},
	}
	for _, tt := range tests {
		line := ladder.OfRecording(tt.rec)
		if got := line.Cause(); !strings.Contains(got, tt.en) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.en)
		}
		if got := line.In("zh").Cause(); !strings.Contains(got, tt.zh) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.zh)
		}
		if got := strings.Contains(inline(tt.rec), `class="lapse"`); got != tt.lapses {
			t.Errorf("%s: the end of a lease is drawn: %v, want %v", tt.name, got, tt.lapses)
		}
	}
}

// TestRenewals checks that the end of a lease counts from the last renewal before the fault.
func TestRenewals(t *testing.T) {
	rec := paused(t)
	rec.Spans[0].From = 2100 * ms // after the renewal at 2.003 s
	for i := range rec.Events {
		if e := &rec.Events[i]; e.Owner == "o2" && e.Step != "asked" {
			e.At += 1100 * ms
		}
	}
	if got := ladder.OfRecording(rec).Cause(); !strings.Contains(got, "The lease of A ended at 4.003 s") {
		t.Error(got)
	}
}

// TestQuietTimesAreCompressed checks that the picture names the times in which nothing happens, and that
// such a time takes no more room than a rung.
func TestQuietTimesAreCompressed(t *testing.T) {
	rec := recordingOf(t,
		"0 replica-1 o1 asked", "3 replica-1 o1 granted", "4 replica-1 o1 writing", "20 replica-2 o2 asked",
		"3010 replica-2 o2 granted", "3012 replica-2 o2 written", "3015 replica-2 o2 released", "11000 replica-1 o1 written", "11005 replica-1 o1 released",
	)
	svg := inline(rec)
	for _, want := range []string{"⋯ 2.99 s", "⋯ 7.99 s"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no gap %q", want)
		}
	}
	height := regexp.MustCompile(`height="([0-9]+)"`).FindStringSubmatch(svg)
	if n, err := strconv.Atoi(height[1]); err != nil || n > 400 {
		t.Errorf("the picture is %d pixels high", n)
	}
	if dense := recordingOf(t, "0 replica-1 o1 asked", "1 replica-1 o1 granted", "2 replica-1 o1 released"); strings.Contains(inline(dense), "⋯") {
		t.Error("a short recording has a gap")
	}
}
