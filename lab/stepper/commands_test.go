package stepper

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestCommands lets B wait for the lock of A. Each entry must have the commands that the replica
// really sent. The strategies use one backend each.
func TestCommands(t *testing.T) {
	cfg := rig.FullLab("", "token")
	cfg.Nginx, cfg.Replicas = false, 2
	lab := rigtest.Start(t, rigtest.Guest(cfg))
	for strategy, want := range map[string][]string{
		"none": {
			"A read: SELECT * FROM `db_stock`", "A written: UPDATE db_stock SET count = 9 WHERE id = ",
			"B read: SELECT * FROM `db_stock`", "B written: UPDATE db_stock SET count = 8 WHERE id = ",
		},
		"for-update": {
			"A granted: START TRANSACTION", "A granted: SELECT * FROM `db_stock`", "A written: UPDATE db_stock SET count = 9", "A released: COMMIT",
			"B wait: START TRANSACTION", "B wait: SELECT * FROM `db_stock`", "B written: UPDATE db_stock SET count = 8", "B released: COMMIT",
		},
		"redis": {
			"A granted: EVALSHA acquire.lua 2 redis:stock:", "A read: SELECT", "A written: UPDATE", "A released: EVALSHA release.lua 2 redis:stock:",
			"B wait: EVALSHA acquire.lua 2 redis:stock:", "B granted: EVALSHA acquire.lua 2 redis:stock:", "B read: SELECT", "B written: UPDATE", "B released: EVALSHA release.lua",
		},
		"zk": {
			"A queued: create -e -s /oversell/zk/stock:", "A granted: ls /oversell/zk/stock:", "A read: SELECT", "A written: UPDATE", "A released: multi: set /oversell/zk/stock:",
			"B queued: create -e -s /oversell/zk/stock:", "B wait: get -w /oversell/zk/stock:", "B read: SELECT", "B written: UPDATE", "B released: multi: set ",
		},
		"etcd": {
			"A queued: lease grant ", "A queued: txn: put /oversell/etcd/stock:", "A read: SELECT", "A written: UPDATE", "A released: txn: if create(/oversell/etcd/stock:",
			"B queued: txn: put ", "B wait: watch /oversell/etcd/stock:", "B granted: get /oversell/etcd/stock:", "B read: SELECT", "B written: UPDATE", "B released: txn: if create(",
		},
	} {
		t.Run(strategy, func(t *testing.T) {
			log := waitThenSell(t, lab, strategy)
			var lines [2][]string
			for _, e := range log {
				for _, c := range e.Commands {
					step := e.Step
					if e.State() == Waiting {
						step = "wait"
					}
					lines[e.Client] = append(lines[e.Client], e.Client.String()+" "+string(step)+": "+c)
				}
			}
			for _, w := range want {
				client := A
				if strings.HasPrefix(w, "B") {
					client = B
				}
				if !contains(&lines[client], w) {
					t.Errorf("%q is missing, or not in this order; %+v", w, log)
				}
			}
		})
	}
}

// contains removes the lines up to the first one that begins with text.
func contains(lines *[]string, text string) bool {
	for i, line := range *lines {
		if strings.HasPrefix(line, text) {
			*lines = (*lines)[i+1:]
			return true
		}
	}
	return false
}

// waitThenSell lets A read first, and then B go on until it has to wait or has its answer.
func waitThenSell(t *testing.T, on *rig.Rig, strategy string) []Entry {
	t.Helper()
	lab, err := Open(on, strategy)
	if err != nil {
		t.Fatal(err)
	}
	round, err := lab.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := round.Close(); err != nil {
			t.Error(err)
		}
	}()
	step := func(client Client) {
		if err := goOn(t.Context(), round, client); err != nil {
			t.Fatal(err)
		}
	}
	alone := strategy == "none" // B would not wait for A
	for alone && round.State(A) != Ended || !alone && !has(round, A, "read") {
		step(A)
	}
	for round.free(B) && !round.Over() {
		step(B)
	}
	for !round.Over() {
		step(round.next())
	}
	return round.Log
}

func has(r *Round, client Client, step api.Step) bool {
	for _, e := range r.Log {
		if e.Client == client && e.Step == step {
			return true
		}
	}
	return false
}
