package grade

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/trial"
	"oversell/trial/adapter"
	"oversell/trial/lockstest"
	"oversell/view/matrix"
)

// Limit is the time from the start of the command after which no check and no hazard runs. A grading
// takes less than 120 s. A busy machine needs more, and must not take points from a right lock.
const Limit = 150 * time.Second

// Suits returns an error if a lock with this hello cannot be graded in the exercise.
func (e Exercise) Suits(hello adapter.Hello) error {
	text, err := json.Marshal(hello.Capabilities)
	claimed := map[string]bool{}
	if err == nil {
		err = json.Unmarshal(text, &claimed)
	}
	if err != nil {
		return err
	}
	for _, capability := range e.Needs {
		if !claimed[capability] {
			const format = `exercise %d needs the capability %s: write "%s":true into the capabilities of the program's hello`
			return fmt.Errorf(format, e.Number, capability, capability)
		}
	}
	if !slices.ContainsFunc(hello.Backends, func(b string) bool { return slices.Contains(e.Servers, b) }) {
		return fmt.Errorf("exercise %d needs a lock on one of these backends: %s. The hello of the program names %s",
			e.Number, strings.Join(e.Servers, ", "), strings.Join(append(hello.Backends, "no other"), ", "))
	}
	if len(hello.Breaks) > 0 {
		return errors.New("the hello of the program has breaks: a lock that is graded must not name hazards that break it")
	}
	return nil
}

// Lab changes the settings of a lab to those that the exercise needs.
func (e Exercise) Lab(cfg *rig.Config, lock trial.Lock) {
	lock.HazardLab(cfg)
	cfg.Nginx, cfg.Clocks = false, false
	if !slices.ContainsFunc(e.New, func(r Requirement) bool { return r.Hazard == "minority-loss" }) {
		cfg.Zookeeper, cfg.Etcd = 1, 1 // fewer servers start sooner
	}
}

// grading is the grading of one submission.
type grading struct {
	exercise Exercise
	lock     trial.Lock
	watcher  trial.Watcher
	contract trial.Contract
	results  []experiment.Result
	found    map[string]Finding // by requirement
}

// Run grades a lock in a lab with the settings of Exercise.Lab. The command began at this time.
func (e Exercise) Run(ctx context.Context, began time.Time, lab *rig.Rig, lock trial.Lock, w trial.Watcher) (Grade, error) {
	g := &grading{exercise: e, lock: lock, watcher: w, found: map[string]Finding{}}
	if err := g.run(ctx, began, lab); err != nil {
		return Grade{}, err
	}
	grade := Of(e, g.findings())
	grade.Hello, grade.results = lock.Hello, g.results
	grade.Counterexample = grade.counterexample()
	return grade, nil
}

// requirements returns the requirements that apply to a lock with this hello.
func (g *grading) requirements() []Requirement {
	card := g.lock.Hello.Card()
	claims := map[string]lockstest.Claim{}
	for _, c := range lockstest.Checks() {
		claims[c.Name] = c.Claim(card)
	}
	hazards := experiment.HazardsOf(card)
	return slices.DeleteFunc(g.exercise.Requirements(), func(r Requirement) bool {
		return r.Check != "" && claims[r.Check] == lockstest.Silent ||
			r.Hazard != "" && !slices.Contains(hazards, r.Hazard)
	})
}

func (g *grading) run(ctx context.Context, began time.Time, lab *rig.Rig) error {
	limited, cancel := context.WithDeadlineCause(ctx, began.Add(Limit), fmt.Errorf("the grade took longer than %v", Limit))
	defer cancel()
	required := g.requirements()
	wanted := func(check string) bool {
		return slices.ContainsFunc(required, func(r Requirement) bool { return r.Check == check })
	}
	outcomes, err := g.lock.CheckContract(limited, lab.Addresses(), wanted, func(o lockstest.CheckResult) {
		g.watcher.Checked(o)
		g.checked(o)
	})
	if g.contract = outcomes; err != nil && limited.Err() == nil {
		return err
	}
	if _, basic := g.contract.Failed(); basic { // these hazards may show two holders in a timeline
		limited, cancel = context.WithTimeout(limited, 20*time.Second)
		defer cancel()
		required = slices.DeleteFunc(required, func(r Requirement) bool {
			return r.Hazard != "race" && r.Hazard != "replica-race"
		})
	}
	// The new ones first, because the time may be over before the last one.
	slices.SortStableFunc(required, func(a, b Requirement) int { return g.rank(a) - g.rank(b) })
	if err := g.inject(limited, lab, required); err != nil && limited.Err() == nil {
		return err
	}
	return ctx.Err()
}

// rank orders the new requirements of the exercise before those of earlier ones.
func (g *grading) rank(r Requirement) int {
	if slices.Contains(g.exercise.New, r) {
		return 0
	}
	return 1
}

func (g *grading) checked(o lockstest.CheckResult) {
	g.found[o.Check] = Finding{
		Requirement: o.Check, Met: o.Failed+o.Inconclusive == "", Checked: o.Inconclusive == "",
		Found: api.Text{EN: cmp.Or(o.Failed, o.Inconclusive, o.Claimed)},
	}
}

// inject injects the hazards among the requirements, one after the other.
func (g *grading) inject(ctx context.Context, lab *rig.Rig, required []Requirement) error {
	bed, err := player.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	for _, r := range required {
		if r.Hazard == "" {
			continue
		}
		store, err := experiment.OpenStore("")
		if err != nil {
			return err
		}
		plan := experiment.Selection{Hazards: []api.Hazard{r.Hazard}, Strategies: []string{adapter.ID}, Fenced: r.Fenced, Seed: 1}
		if err := experiment.Perform(ctx, bed, plan, store, unclaimed{g.watcher}); ctx.Err() != nil {
			return err
		} else if err != nil {
			found := api.Textf("The experiment failed: %v", "实验出错：%v", err)
			g.found[r.Name()] = Finding{Requirement: r.Name(), Checked: true, Found: found}
			continue
		}
		for _, result := range store.Results() {
			g.add(r, result)
		}
	}
	return nil
}

func (g *grading) add(r Requirement, result experiment.Result) {
	if _, basic := g.contract.Failed(); basic && !doubleGrant(result) && result.Verdict != api.Safe {
		return // the failed check is the reason
	}
	result.Adapter = g.lock.Command
	g.results = append(g.results, result)
	g.found[r.Name()] = Finding{
		Requirement: r.Name(), Checked: result.Verdict != api.Inconclusive, Met: result.Verdict == api.Safe,
		Found: api.Text{EN: matrix.Cause(result, "en"), ZH: matrix.Cause(result, "zh")},
	}
}

// doubleGrant reports whether a second request got the lock long before the lease of the first ended.
func doubleGrant(r experiment.Result) bool {
	long := float64(player.Lease.Milliseconds()) / 2
	return r.Verdict == api.Broken && r.NextGrantMS > 0 && r.NextGrantMS < long
}

// findings returns a finding for each requirement, also for those that were not checked.
func (g *grading) findings() (all []Finding) {
	for _, r := range g.requirements() {
		f, ok := g.found[r.Name()]
		if !ok {
			f = Finding{Requirement: r.Name(), Found: g.unchecked()}
		}
		f.Kept = slices.Contains(g.exercise.Kept, r)
		all = append(all, f)
	}
	return all
}

// unchecked says why a requirement was not checked.
func (g *grading) unchecked() api.Text {
	if _, basic := g.contract.Failed(); basic {
		return api.Text{EN: "Not checked, because a basic check failed.", ZH: "没有检查，因为一项基本检查失败了。"}
	}
	return api.Textf("Not checked within %v. Grade it again on a machine with less load.",
		"%v 内没有检查完，请在负载较低的机器上重新评分。", Limit)
}

// unclaimed passes results on without the claims of the lock, which do not count in a grading.
type unclaimed struct{ trial.Watcher }

func (w unclaimed) End(e experiment.Experiment, results []experiment.Result, took time.Duration) {
	results = slices.Clone(results)
	for i := range results {
		results[i].Claim = api.Silent
	}
	w.Watcher.End(e, results, took)
}
