package ladder_test

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/stepper"
	"oversell/view/ladder"
)

// entry returns an entry of a round's log.
func entry(client stepper.Client, move int, step api.Step, text string, row int, commands ...string) stepper.Entry {
	return stepper.Entry{Client: client, Step: step, Text: api.Text{EN: text, ZH: "甲"}, Row: row, Move: move, Commands: commands}
}

// lostByTurns returns the log of two clients that read 10 before either of them writes 9.
func lostByTurns() []stepper.Entry {
	return []stepper.Entry{
		entry(stepper.A, 1, "read", "has read 10", 10, "SELECT * FROM `db_stock` WHERE id = 1 LIMIT 1 and much more"),
		entry(stepper.B, 2, "read", "has read 10", 10),
		entry(stepper.A, 3, "writing", "is about to write 9", 10), entry(stepper.A, 4, "written", "has written 9", 9),
		entry(stepper.B, 5, "writing", "is about to write 9", 9), entry(stepper.B, 6, "written", "has written 9", 9),
		entry(stepper.A, 7, "", "answer: sold, 9 left", 9), entry(stepper.B, 8, "", "answer: sold, 9 left", 9),
	}
}

// TestSteps draws a round without a lock and one with a lock.
func TestSteps(t *testing.T) {
	waits := entry(stepper.B, 2, "", "waits for the lock", 10)
	waits.Text.ZH = "在等锁"
	locked := []stepper.Entry{
		entry(stepper.A, 1, "granted", "has the lock", 10), waits,
		entry(stepper.A, 3, "released", "has released the lock", 9), entry(stepper.B, 3, "granted", "has the lock", 9),
		entry(stepper.A, 4, "", "answer: sold, 9 left", 9), entry(stepper.B, 5, "released", "has released the lock", 8),
	}
	both := []stepper.Entry{entry(stepper.A, 1, "granted", "has the lock", 10), entry(stepper.B, 2, "granted", "has the lock", 10)}
	for _, tt := range []struct {
		name        string
		log         []stepper.Entry
		locked      bool
		lang        string
		has, hasNot []string
	}{
		{"lost", lostByTurns(), false, "en", []string{"SELECT * FROM", "…<", "has written 9 over 9 ✗", `class="rung  lost"`, ">9</text>"}, []string{"lock", "both believe"}},
		{"locked", locked, true, "en", []string{`class="wait"`, `class="hold"`, `dy="16">B</text>`}, []string{"both believe"}},
		{"two holders", both, true, "en", []string{"✗ A and B both believe that they hold the lock"}, nil},
		{"Chinese", both, true, "zh", []string{"✗ A 和 B 都以为自己持锁", "甲", "库存"}, []string{"has the lock"}},
		{"begin", nil, true, "en", []string{">lock<", ">stock<", ">10<"}, []string{`class="rung`}},
	} {
		svg := ladder.OfSteps(tt.log, tt.locked, tt.lang).Inline("steps")
		wellFormed(t, tt.name, []byte(svg))
		for _, want := range tt.has {
			if !strings.Contains(string(svg), want) {
				t.Errorf("%s: no %s in %s", tt.name, want, svg)
			}
		}
		for _, bad := range tt.hasNot {
			if strings.Contains(string(svg), bad) {
				t.Errorf("%s: %s", tt.name, bad)
			}
		}
	}
}
