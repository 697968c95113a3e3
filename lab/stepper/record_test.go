package stepper

import (
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// testLab is a lab with all servers and two replicas. The tests on it run one after the other, and
// TestSlowReplica after them.
var testLab *rig.Rig

func TestMain(m *testing.M) {
	cfg := rig.FullLab("", "token")
	cfg.Nginx, cfg.Replicas, cfg.ReplicaArgs = false, 2, []string{"--lease", "10m"}
	rigtest.MainWith(m, rigtest.Guest(cfg), func(r *rig.Rig) { testLab = r })
}

const recordedSteps = "../../docs/recorded/steps.json.gz"

func recordings(t *testing.T) map[string]Graph {
	t.Helper()
	compressed, err := os.ReadFile(recordedSteps)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Recordings(compressed)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRecordedSteps plays random rounds on a real lab. Each move must do what the recording says.
func TestRecordedSteps(t *testing.T) {
	all := recordings(t)
	for _, strategy := range []string{"none", "mutex", "for-update", "version", "redis", "zk", "etcd"} {
		lab, err := Open(testLab, strategy)
		if err != nil {
			t.Fatal(err)
		}
		lab.rankFences = true
		for range 3 {
			seed := rand.Uint64()
			if differs := replay(t, lab, all[strategy], rand.New(rand.NewPCG(seed, 0))); differs != "" {
				t.Errorf("%s, seed %d: %s; if the strategy has changed, run `make steps strategy=%s`", strategy, seed, differs, strategy)
			}
		}
	}
}

// replay plays a round with random moves. It returns the first move that differs from the recording.
func replay(t *testing.T, lab *Lab, g Graph, random *rand.Rand) (differs string) {
	t.Helper()
	if len(g.Nodes) == 0 {
		return "nothing is recorded"
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
	at, moves := g.Nodes[0], ""
	for !round.Over() {
		client := Client(random.IntN(2))
		if !round.free(client) {
			client = client.other()
		}
		moves += strings.ToLower(client.String())
		before := len(round.Log)
		if err := goOn(t.Context(), round, client); err != nil {
			t.Fatal(err)
		}
		move := at.Moves[client]
		if move == nil {
			return moves + ": this move is not recorded"
		}
		outlast(t, round, g.Nodes[move.To])
		seen, want := settled(round.Log[before:], client), slices.Clone(move.Log)
		for _, log := range [][]Entry{seen, want} {
			for i := range log {
				log[i].Move, log[i].Commands = 0, nil // a lock that polls sends another number of them in each round
			}
		}
		if !reflect.DeepEqual(seen, want) {
			return moves + ": seen " + text(seen) + ", recorded " + text(want)
		}
		at = g.Nodes[move.To]
	}
	if at.End == nil || at.End.Text != sentence(round.Stock()) {
		return moves + ": the recording ends differently from: " + sentence(round.Stock()).EN
	}
	return ""
}

// outlast waits while a client seems to wait that does not wait in the recording: a busy machine may
// need more time for a step than a recording allows.
func outlast(t *testing.T, round *Round, recorded Node) {
	t.Helper()
	for range 20 {
		for _, client := range []Client{A, B} {
			if round.State(client) == Waiting && recorded.States[client] != Waiting {
				if err := round.Go(t.Context(), client); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func text(log []Entry) string {
	var lines []string
	for _, e := range log {
		lines = append(lines, e.Client.String()+" "+e.String())
	}
	return strings.Join(lines, "; ")
}

// literals are what may differ between a command that the page announces and the same command as it is sent.
var literals = regexp.MustCompile(`'[^']*'|"[^"]*"|[0-9a-f]{40}|replica-\d\S*|_c_\S*|\{redis-stock[^}…]*[}…]?|\b[0-9a-f]{13,16}\b|-?\b\d+\b|\bnew\b`)

// TestShownCommands runs A alone with every recorded strategy. Each command that the page shows before a step must be one
// that the replica sends in it, for the product of the round. The replica creates a parent in ZooKeeper only once.
func TestShownCommands(t *testing.T) {
	for strategy, g := range recordings(t) {
		lab, err := Open(testLab, strategy)
		if err != nil {
			t.Fatal(err)
		}
		round, err := lab.Begin(t.Context())
		for err == nil && !round.Over() && round.State(A) != Ended {
			err = round.Go(t.Context(), A)
		}
		if err != nil {
			t.Fatalf("%s: %v", strategy, err)
		}
		program := ForProduct(g.Program(A, nil), round.Product)
		parent := regexp.MustCompile(`^create /oversell`)
		product := regexp.MustCompile(`\b` + strconv.FormatInt(round.Product, 10) + `\b`)
		shape := func(commands []string) (shapes []string) {
			for _, c := range commands {
				c, _, _ = strings.Cut(Brief(c), "…") // long commands are cut, where depends on the literals
				shapes = append(shapes, literals.ReplaceAllString(product.ReplaceAllLiteralString(c, "PRODUCT"), "?"))
			}
			return shapes
		}
		for i, e := range settled(round.Log, A) {
			sent := shape(e.Commands)
			for _, c := range shape(program[min(i, len(program)-1)].Commands) {
				same := func(s string) bool { return strings.HasPrefix(s, c) || strings.HasPrefix(c, s) }
				if !parent.MatchString(c) && !slices.ContainsFunc(sent, same) {
					t.Errorf("%s, step %q: the page shows %q, and the replica sends %q; if the strategy has changed, run `make steps strategy=%s`", strategy, e.Step, c, sent, strategy)
				}
			}
		}
		closeRound(t, round)
	}
}

func TestCompleteRecording(t *testing.T) {
	end := Node{States: [2]State{Ended, Ended}}
	r := recorder{Graph: Graph{Nodes: []Node{
		{Moves: [2]*Move{{To: 2}, {To: 2}}},
		{}, // no move leads here, so its moves need no recording
		end,
	}}}
	g, err := r.complete("none")
	if err != nil || len(g.Nodes) != 2 || g.Nodes[0].Moves[A].To != 1 || g.Nodes[1] != end {
		t.Errorf("complete = %+v, %v, want the first state and the end", g, err)
	}
	r.Nodes[0].Moves[B] = nil
	if _, err := r.complete("none"); err == nil || !strings.Contains(err.Error(), "a move of B") {
		t.Errorf("complete = %v, want an error: the start has no move of B", err)
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b State
		want Client
	}{
		{Stopped, Stopped, A},
		{Waiting, Stopped, B},
		{Ended, Idle, B},
		{Waiting, Waiting, A},
		{Ended, Waiting, B},
	} {
		round := Round{clients: [2]*clientState{{state: c.a}, {state: c.b}}}
		if got := round.next(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
