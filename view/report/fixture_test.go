package report_test

import (
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
)

// The fixture is written by hand, so that every figure can be checked on paper. Each client sends a
// request every 20 ms (step). A request takes half of that time and as many milliseconds as the
// client's number.

const step = 20 * time.Millisecond

// fate sets the result of a client's nth request.
type fate func(client, nth int, op *history.Op)

func written(strategy string, clients, loops int, f fate) history.History {
	h := history.History{
		Strategy: strategy, URL: "http://127.0.0.1:8080/check/lock?strategy=" + strategy + "&wait=10s",
		Start:   time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC),
		Clients: clients, Loops: loops,
	}
	var ops [][]history.Op
	for client := 1; client <= clients; client++ {
		var own []history.Op
		for nth := range loops {
			call := time.Duration(nth) * step
			op := history.Op{
				Client: client, Strategy: strategy, Qty: 1, Call: call, Return: call + step/2 + time.Duration(client)*time.Millisecond,
				Outcome: history.OK, Reason: history.Sold, Status: 200, Replica: "replica-" + string(rune('0'+client%3+1)),
				Waited: 4 * time.Millisecond, Held: time.Millisecond, BytesIn: 320, BytesOut: 160,
				FirstByte: step / 2, Active: clients,
			}
			if nth == 0 {
				op.Connect = time.Millisecond
			}
			f(client, nth, &op)
			own = append(own, op)
		}
		ops = append(ops, own)
	}
	h.Ops = history.Merge(ops)
	return h
}

func refuse(op *history.Op, status int, reason, detail string) {
	op.Outcome, op.Status, op.Reason, op.Detail = history.Refused, status, reason, detail
}

func lose(op *history.Op, reason, detail string) {
	op.Outcome, op.Status, op.Reason, op.Detail = history.Unknown, 0, reason, detail
	op.Replica, op.BytesIn, op.FirstByte = "", 0, 0
}

func allSold(int, int, *history.Op) {}

func soldOutAfter(pieces int) fate {
	return func(client, nth int, op *history.Op) {
		if nth*4+client > pieces {
			refuse(op, 409, history.SoldOut, "")
		}
	}
}

// histories returns four runs: one loses updates, one sells out, and one has several kinds of
// failure. All texts of the fourth run try to inject code into the page.
func histories() []history.History {
	return []history.History{
		written("none", 4, 10, allSold),
		written("redis", 4, 10, soldOutAfter(30)),
		written("zk", 4, 10, func(client, nth int, op *history.Op) {
			switch {
			case nth == 3:
				refuse(op, 503, history.NotAcquired, "not acquired within 10s")
			case nth == 4 && client > 1:
				refuse(op, 503, history.Unavailable, "zk: connection refused")
				op.Backend = "zookeeper"
			case nth == 5 && client == 2:
				lose(op, history.TimedOut, "read tcp 127.0.0.1:41000->127.0.0.1:8080: i/o timeout")
			}
			op.Retries = client
		}),
		written(`<script>alert("x")</script>`, 2, 2, func(_, nth int, op *history.Op) {
			op.Replica = `"><img src=x onerror=alert(1)>`
			if nth == 1 {
				refuse(op, 503, `</td><script>`, "=cmd|' /C calc'!A0, \"quoted\",\nsecond \x1b[31mline")
				op.Backend = "<b>"
			}
		}),
	}
}

func results() []measure.Result {
	left := []int{33, 0, 8, 8}
	var all []measure.Result
	for i, h := range histories() {
		s := measure.Setup{
			Safe: i > 0, Stock: []int{40, 30, 40, 10}[i], Remaining: &left[i],
			Plan: load.Plan{Wait: 10 * time.Second, Seed: 42, Target: "http://127.0.0.1:8080"},
			Conditions: measure.Conditions{
				Machine:  measure.Machine{OS: "linux", Arch: "amd64", Cores: 2, CPU: "Some <CPU> & Sons", MemoryGB: 23.4},
				Versions: map[string]string{"go": "go1.26.0", "oversell": "1.0.0", "commit": "0123abc"},
			},
		}
		if i == 3 {
			s.Warnings = []string{`redis: <a href="javascript:alert(1)">x</a>`}
		}
		all = append(all, measure.Summarise(h, s))
	}
	return all
}
