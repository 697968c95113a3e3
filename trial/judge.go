package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/comparison"
	"oversell/lab/experiment"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/lab/suggest"
	"oversell/trial/adapter"
	"oversell/trial/lockstest"
	"oversell/view/matrix"
)

const (
	// loadHazard is the name of the load among the hazards that a user selects.
	loadHazard = "load"
	// loadClients is the number of clients of the load.
	loadClients = 100
	// yardstick is the strategy that gets the same load in the same lab: a number of requests per
	// second says nothing about a lock without one to compare it with.
	yardstick = "redis"
)

// Judge says what a trial does with a lock, after its contract.
type Judge struct {
	Lock  Lock
	Seed  int64 // of the first round
	Seeds int   // number of rounds; each has the next seed
	// Command is the command that the verdict names, for a repetition.
	Command string

	hazards []api.Hazard
	load    bool
}

// Watcher receives the progress of a trial, from one goroutine at a time.
type Watcher interface {
	experiment.Watcher
	// Part says what begins: the contract, the hazards or the load.
	Part(title string)
	Checked(o lockstest.CheckResult)
	// Loaded gets the results of the load: of the lock, and of the strategy redis beside it.
	Loaded(results []measure.Result)
}

// KnownHazards rejects a hazard that a trial does not have. A trial also has the load, which is no hazard.
func KnownHazards(hazards []api.Hazard) error {
	return known(slices.DeleteFunc(slices.Clone(hazards), func(h api.Hazard) bool { return h == loadHazard }))
}

func known(hazards []api.Hazard) error {
	for _, hazard := range hazards {
		_, err := suggest.Find("hazard", string(hazard), experiment.All(), func(e experiment.Experiment) string { return string(e.Hazard) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Select selects hazards by their names, with load among them; none means all that apply. It rejects
// those that do not apply to the lock.
func (j *Judge) Select(hazards []api.Hazard) error {
	if err := errors.Join(j.Lock.checkClaims(), KnownHazards(hazards)); err != nil {
		return err
	}
	card := j.Lock.Hello.Card()
	applicable := experiment.HazardsOf(card)
	if len(hazards) == 0 {
		for _, e := range experiment.All() { // these labs take long
			if e.Lab != nil && e.Applies(card) && card.Claim(e.Hazard) != api.Silent {
				applicable = append(applicable, e.Hazard)
			}
		}
		j.hazards, j.load = applicable, true
		return nil
	}
	j.hazards = slices.DeleteFunc(slices.Clone(hazards), func(h api.Hazard) bool { return h == loadHazard })
	j.load = len(j.hazards) < len(hazards)
	for _, e := range experiment.All() {
		if slices.Contains(j.hazards, e.Hazard) && !e.AppliesTo(card) {
			const format = "the hazard %s does not apply to a lock with these capabilities, backends and claims; these do: %s"
			return fmt.Errorf(format, e.Hazard, api.JoinHazards(applicable, ", "))
		}
	}
	return nil
}

// Unapplied returns the claims of the hello whose hazards cannot reach this lock: nothing is injected for them, and
// nothing confirms them.
func (j *Judge) Unapplied() (hazards []api.Hazard) {
	card := j.Lock.Hello.Card()
	for _, e := range experiment.All() {
		if !e.AppliesTo(card) && card.Claim(e.Hazard) != api.Silent {
			hazards = append(hazards, e.Hazard)
		}
	}
	return hazards
}

// OpenStore opens the folder with the results of earlier rounds. It rejects a folder with results of
// another lock. The name "" is a store in memory.
func (j *Judge) OpenStore(folder string) (*experiment.ResultStore, error) {
	store, err := experiment.OpenStore(folder)
	if err != nil {
		return nil, err
	}
	for _, r := range store.Results() {
		if r.Adapter != j.Lock.Command {
			return nil, fmt.Errorf("the folder has results of another command: %s", r.Command())
		}
	}
	return store, nil
}

// Try puts the lock on trial in a lab with the settings of Lock.HazardLab: the contract first, and
// then the hazards and the load if the contract's basic checks hold. With an error, the report has what was found until then.
func (j *Judge) Try(ctx context.Context, lab *rig.Rig, store *experiment.ResultStore, w Watcher) (v Report, err error) {
	at, versions := lab.Addresses(), map[string]string{}
	backend.Versions(ctx, versions, at.MySQL, at.Redis, at.Zookeeper, at.Etcd)
	if at.Postgres != "" {
		if versions["postgresql"], err = backend.PostgresVersion(ctx, at.Postgres); err != nil {
			return v, err
		}
	}
	v = Report{About: matrix.Now(ctx, versions, j.Command), Hello: j.Lock.Hello}
	if err := j.checkTopologies(ctx, lab); err != nil {
		return v, err
	}
	w.Part("The contract:")
	v.Contract, err = j.Lock.CheckContract(ctx, at, nil, w.Checked)
	if _, basic := v.Contract.Failed(); !basic && err == nil {
		err = j.inject(ctx, lab, store, w)
		if err == nil && j.load {
			v.Load, err = j.sendLoad(ctx, at, versions, w)
		}
	}
	v.Runs = store.Results()
	v.Matrix = matrix.Summarise(v.Runs)
	v.Totals = totalsOf(v.Matrix, v.Contract)
	return v, err
}

// checkTopologies returns an error if the lock cannot be acquired on the Redis of a selected hazard.
func (j *Judge) checkTopologies(ctx context.Context, lab *rig.Rig) error {
	checked := []rig.Topology{rig.OneRedis}
	for _, e := range experiment.All() {
		if e.Lab == nil || !slices.Contains(j.hazards, e.Hazard) {
			continue
		}
		if topology := e.Lab(lab.Config()).RedisTopology; !slices.Contains(checked, topology) {
			if err := j.Lock.reaches(ctx, topology, lab.Addresses()); err != nil {
				return fmt.Errorf("hazard %s: %w", e.Hazard, err)
			}
			checked = append(checked, topology)
		}
	}
	return nil
}

// inject injects the selected hazards. The watcher first gets the results that the store already has.
func (j *Judge) inject(ctx context.Context, lab *rig.Rig, store *experiment.ResultStore, w Watcher) error {
	if len(j.hazards) == 0 {
		return nil
	}
	bed, err := player.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	w.Part("The hazards:")
	if left := j.Unapplied(); len(left) > 0 {
		w.Part(fmt.Sprintf("Not tried, although the hello claims something about it: %s. These hazards cannot reach a lock "+
			"with these capabilities and backends.", api.JoinHazards(left, ", ")))
	}
	if earlier := store.Results(); len(earlier) > 0 {
		w.End(experiment.Experiment{}, earlier, 0)
	}
	return experiment.Perform(ctx, bed, experiment.Selection{
		Hazards: j.hazards, Strategies: []string{adapter.ID}, Adapter: j.Lock.Command, Seed: j.Seed, Seeds: j.Seeds,
	}, store, w)
}

// sendLoad sends the load to the lock, and then to the yardstick.
func (j *Judge) sendLoad(
	ctx context.Context, at rig.Addresses, versions map[string]string, w Watcher,
) (results []measure.Result, err error) {
	w.Part(fmt.Sprintf("The load: %d clients on %d replicas for 5 s, and the same on the strategy %s.",
		loadClients, len(at.Replicas), yardstick))
	runs, err := comparison.Run(ctx, comparison.Plan{
		Plan:  load.Plan{Target: at.Target, Clients: loadClients, Loops: 1, Wait: 10 * time.Second, Seed: j.Seed},
		Token: at.Token, Strategies: []string{adapter.ID, yardstick}, Sweep: []int{loadClients},
		Conditions: measure.Conditions{Machine: measure.ThisMachine(ctx), Versions: versions},
	}, unwatched{})
	for _, r := range runs {
		results = append(results, r.Result)
	}
	if len(results) > 0 {
		w.Loaded(results)
	}
	return results, err
}

// unwatched ignores the progress of a load, which takes only seconds.
type unwatched struct{}

func (unwatched) Begin(string, int, int) {}

func (unwatched) Progress(load.Progress) {}

func (unwatched) End(measure.Result) {}
