package ladder_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/view/ladder"
)

var update = flag.Bool("update", false, "write the golden files anew")

const ms = time.Millisecond

// recordingOf returns a recording with an event for each line, such as "3 replica-1 o1 granted" or
// "3 replica-1 o1 granted 7": milliseconds, replica, owner, step, and optionally a fencing token.
func recordingOf(t *testing.T, lines ...string) history.Recording {
	t.Helper()
	var rec history.Recording
	for _, l := range lines {
		e := history.Event{Strategy: "redis", Key: "stock:1"}
		var at int
		n, err := fmt.Sscan(l, &at, &e.Replica, &e.Owner, &e.Step, &e.Fence)
		if n < 4 {
			t.Fatalf("%q: %v", l, err)
		}
		e.At = time.Duration(at) * ms
		rec.Events = append(rec.Events, e)
	}
	return rec
}

func sold(replica string, from, to, remaining int) history.Op {
	return history.Op{
		Strategy: "redis", Qty: 1, Replica: replica, Call: time.Duration(from) * ms, Return: time.Duration(to) * ms,
		Outcome: history.OK, Reason: history.Sold, Status: 200, Remaining: remaining, HasRemaining: true,
	}
}

func failed(replica string, from, to int, outcome history.Outcome, reason string) history.Op {
	return history.Op{
		Strategy: "redis", Qty: 1, Replica: replica, Call: time.Duration(from) * ms, Return: time.Duration(to) * ms,
		Outcome: outcome, Reason: reason,
	}
}

// paused returns a recording whose first holder pauses past its lease, and writes after the lock
// was granted to the next holder.
func paused(t *testing.T) history.Recording {
	rec := recordingOf(t,
		"1001 replica-1 o1 asked", "1003 replica-1 o1 granted 7", "1004 replica-1 o1 read 7", "1005 replica-1 o1 writing 7",
		"1100 replica-2 o2 asked", "4010 replica-2 o2 granted 8", "4020 replica-2 o2 read 8", "4030 replica-2 o2 writing 8",
		"5500 replica-1 o1 written 7", "5510 replica-1 o1 released 7",
		"5800 replica-2 o2 written 8", "5900 replica-2 o2 released 8",
	)
	rec.Stock, rec.Lease, rec.Renews = 10, 3*time.Second, true
	rec.Ops = []history.Op{sold("replica-1", 1000, 5520, 9), sold("replica-2", 1090, 5910, 9)}
	rec.Spans = []history.Span{{What: "stop", Who: "replica-1", From: 1050 * ms, To: 5490 * ms}}
	return rec
}

// killed returns a recording in which no request gets the lock of a dead holder.
func killed(t *testing.T) history.Recording {
	rec := recordingOf(t,
		"0 replica-1 o1 asked", "2 replica-1 o1 granted", "310 replica-2 o2 asked", "311 replica-2 o2 after-setnx",
	)
	rec.Ops = []history.Op{
		failed("replica-1", 0, 301, history.Unknown, history.Broken),
		failed("replica-2", 305, 8310, history.Refused, history.NotAcquired),
		failed("", 400, 410, history.Refused, history.Unreachable),
	}
	rec.Spans = []history.Span{{What: "killed", Who: "replica-1", From: 300 * ms, To: 9200 * ms}, {What: "slow <disk> & \"more\"", Who: "mysql", From: 500 * ms, To: 900 * ms}}
	return rec
}

// stepless returns a recording without steps, because the strategy is a single statement.
func stepless() history.Recording {
	return history.Recording{Ops: []history.Op{
		sold("replica-1", 0, 30, 9), sold("replica-2", 10, 50, 8), failed("replica-3", 20, 60, history.Refused, history.SoldOut),
	}}
}

func TestGolden(t *testing.T) {
	for name, rec := range map[string]history.Recording{
		"overlap.svg": paused(t), "killed.svg": killed(t), "stepless.svg": stepless(), "nothing.svg": {},
	} {
		picture := inline(rec)
		golden(t, name, []byte(picture))
		wellFormed(t, name, []byte(picture))
		for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "%!", "%%"} {
			if strings.Contains(picture, bad) {
				t.Errorf("%s: contains %s", name, bad)
			}
		}
	}
}

// golden compares got with the file name in testdata. After an intended change of the pictures, run
// go test ./view/ladder -update, and check the new files.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s differs in line %d\n got: %s\nwant: %s", path, i+1, gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%s has %d lines, got %d", path, len(wantLines), len(gotLines))
	}
}

func wellFormed(t *testing.T, name string, svg []byte) {
	t.Helper()
	for in := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s is no XML: %v", name, err)
		}
	}
}

func inline(rec history.Recording) string {
	return string(ladder.OfRecording(rec).Ladder().Inline("x"))
}

// The Chinese picture has no English words but names: of servers, of faults, and of steps that only
// one strategy has.
func TestInChinese(t *testing.T) {
	names := regexp.MustCompile(`replica-\d|mysql|redis|pause|after-setnx|slow <disk> & "more"|\b\d*m?s\b`)
	english := regexp.MustCompile(`[a-z]{2,}`)
	for _, rec := range []history.Recording{paused(t), killed(t), stepless()} {
		line := ladder.OfRecording(rec).In("zh")
		var words []string
		for in := xml.NewDecoder(strings.NewReader(string(line.Ladder().Inline("x")))); ; {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if text, ok := token.(xml.CharData); ok {
				words = append(words, string(text))
			}
		}
		for _, text := range append(words, line.Cause()) {
			if left := english.FindAllString(names.ReplaceAllString(text, ""), -1); left != nil {
				t.Errorf("%q: %q", text, left)
			}
		}
	}
}

func TestOverlapIsMarkedOnBothBars(t *testing.T) {
	svg := inline(paused(t))
	for _, want := range []string{
		"✗ A and B both believe that they hold the lock", ", fence 7<", "writes 9 over 9 ✗", "✗ Lost update: 2 sold, 1 taken from stock", `id="x-violation"`,
		"<li>0.003 s: A: gets the lock, fence 7</li>", `class="lapse"`, `class="frozen"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(svg, `class="both"`); n != 2 { // one on each bar
		t.Errorf("%d hatched boxes, want 2", n)
	}
}

// TestFaultAlone draws a fault during which no request took a step.
func TestFaultAlone(t *testing.T) {
	alone := ladder.OfRecording(history.Recording{Spans: []history.Span{{What: "kill", Who: "redis-1", From: time.Second, To: 2 * time.Second}}}).In("en")
	if html := alone.Ladder().Inline("alone"); !strings.Contains(string(html), "redis-1: killed") {
		t.Errorf("%s", html)
	}
	if lines := alone.Ladder().Lines(); len(lines) != 2 || !strings.HasSuffix(lines[1], "redis-1: killed") {
		t.Errorf("%q", lines)
	}
}

func TestNoOverlapNoAlarm(t *testing.T) {
	rec := recordingOf(t, "0 replica-1 o1 granted", "5 replica-1 o1 released", "6 replica-2 o2 granted", "9 replica-2 o2 released")
	if svg := inline(rec); strings.Contains(svg, `class="both"`) || strings.Contains(svg, "both believe") || strings.Contains(svg, "believes") {
		t.Error("an overlap where there is none")
	}
}

// A release may be reported late, when the next holder already has the lock.
func TestLateNewsIsNoOverlap(t *testing.T) {
	rec := recordingOf(t, "0 replica-1 o1 granted", "500 replica-2 o2 granted", "501 replica-1 o1 released", "1000 replica-2 o2 released")
	if svg := inline(rec); strings.Contains(svg, "believes") {
		t.Error("a millisecond of late news is drawn as an overlap")
	}
}

// A short hold that begins and ends inside a long hold is an overlap: a late report of a release
// cannot be its cause.
func TestShortHoldInsideAnotherIsAnOverlap(t *testing.T) {
	rec := recordingOf(t, "0 replica-1 o1 granted", "500 replica-2 o2 granted", "501 replica-2 o2 released", "1000 replica-1 o1 released")
	if svg := inline(rec); !strings.Contains(svg, "A still believes that it holds the lock") {
		t.Error("a short hold inside another is not marked")
	}
}

func TestWithoutALockNobodyWaits(t *testing.T) {
	rec := recordingOf(t, "0 replica-1 o1 asked", "1 replica-1 o1 read", "500 replica-1 o1 writing", "501 replica-1 o1 written")
	if n := strings.Count(inline(rec), `class="wait"`); n != 0 {
		t.Errorf("%d waits", n)
	}
}

func TestHarmlessOverlapIsMarkedDifferently(t *testing.T) {
	rec := recordingOf(t, "0 replica-1 o1 granted", "1 replica-1 o1 writing", "500 replica-2 o2 granted", "900 replica-1 o1 released", "1000 replica-2 o2 released")
	if svg := inline(rec); strings.Contains(svg, `class="both"`) || strings.Contains(svg, "rung alarm") || !strings.Contains(svg, "rung note") {
		t.Error("an overlap without a write is marked as a harmful one")
	}
}

// A client reports no step for a write that the stock refuses. The picture must show it.
func TestRefusedWrite(t *testing.T) {
	for reason, want := range map[string]string{"fenced": "writes: ✗ refused, fence 7 is old", "lost": "finds its lock lost, writes nothing"} {
		rec := recordingOf(t, "0 replica-1 o1 granted 7", "1 replica-1 o1 read 7", "50 replica-1 o1 released 7")
		rec.Ops = []history.Op{failed("replica-1", 0, 51, history.Refused, reason)}
		if svg := inline(rec); !strings.Contains(svg, want) || !strings.Contains(svg, "✗ refused, ") {
			t.Errorf("%s: no %q in %s", reason, want, svg)
		}
	}
}

// answers returns the name, the replica and the answer of each client of a picture.
func answers(l ladder.Ladder) (all []string) {
	for i, c := range l.Columns {
		if !c.Client {
			continue
		}
		answer := ""
		for _, r := range l.Rungs {
			if r.Kind == ladder.Answer && r.Column == i {
				answer = r.Words
			}
		}
		all = append(all, c.Name+" "+c.Note+": "+answer)
	}
	return all
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		rec  history.Recording
		want []string
	}{
		{"overlap", paused(t), []string{"A replica-1: ✓ sold, 9 left", "B replica-2: ✓ sold, 9 left"}},
		{"killed", killed(t), []string{"A replica-1: ? connection broken", "B replica-2: ✗ not acquired", "C no replica: ✗ unreachable"}},
		{"stepless", stepless(), []string{"A replica-1: ✓ sold, 9 left", "B replica-2: ✓ sold, 8 left", "C replica-3: ✗ sold out"}},
	} {
		if got := answers(ladder.OfRecording(tt.rec).Ladder()); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Two requests run on one replica. Each answer must be shown at the request that got the answer.
func TestAnswersGoToTheirRequests(t *testing.T) {
	rec := recordingOf(t,
		"2 replica-1 slow asked", "3 replica-1 slow granted", "52 replica-1 fast asked",
		"800 replica-1 slow released",
	)
	rec.Ops = []history.Op{sold("replica-1", 0, 810, 9), failed("replica-1", 50, 300, history.Refused, history.NotAcquired)}
	if got := answers(ladder.OfRecording(rec).Ladder()); !slices.Equal(got, []string{"A replica-1: ✓ sold, 9 left", "B replica-1: ✗ not acquired"}) {
		t.Errorf("%q", got)
	}
}

func TestCrowdIsCutAndSaysSo(t *testing.T) {
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("%d replica-2 w%d asked", i, i))
	}
	lines = append(lines, "70 replica-1 h granted")
	line := ladder.OfRecording(recordingOf(t, lines...))
	clients := answers(line.Ladder())
	if len(clients) != 6 || line.Left() != "55 more requests are not shown." {
		t.Errorf("%d clients, %q", len(clients), line.Left())
	}
	if last := clients[len(clients)-1]; last != "BI replica-1: " {
		t.Errorf("the holder came last, and is not there: %q", last)
	}
}

// TestJump: the link leads to the violation, and without one to the fault.
func TestJump(t *testing.T) {
	for want, rec := range map[string]history.Recording{"violation": paused(t), "fault": killed(t), "": stepless()} {
		if got := ladder.OfRecording(rec).Jump(); got != want {
			t.Errorf("the link leads to %q, want %q", got, want)
		}
	}
	at := slices.IndexFunc(ladder.OfRecording(paused(t)).Ladder().Rungs, func(r ladder.Rung) bool { return r.Anchor == "violation" })
	if r := ladder.OfRecording(paused(t)).Ladder().Rungs[at]; r.Words != "✗ A and B both believe that they hold the lock" {
		t.Errorf("the violation is %q", r.Words)
	}
}

// With very many requests, it is uncertain which answer belongs to which write. The picture then
// does not show the pieces taken from the stock.
func TestCrowdHasNoShelf(t *testing.T) {
	var rec history.Recording
	rec.Stock = 60
	for i := range 60 {
		rec.Ops = append(rec.Ops, sold("replica-1", i, 100+i, 59-i))
	}
	picture := inline(rec)
	if left := ladder.OfRecording(rec).Left(); strings.Contains(picture, "taken from stock") || left != "54 more requests are not shown." {
		t.Error("the stock is uncertain with so many requests, and the picture has it")
	}
	if place := ladder.OfRecording(rec).Jump(); place != "" {
		t.Errorf("a guess is no violation: %s", place)
	}
}
