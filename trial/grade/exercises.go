// Package grade grades a lock of a student: it has the exercises of docs/exercises, what a lock must do to
// pass each of them, and the hints.
package grade

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/suggest"
)

// Exercise is a task for a student: a lock with these requirements.
type Exercise struct {
	Number int      `json:"number"`
	Name   string   `json:"name"` // the page is docs/exercises/<number>-<name>.md
	Title  api.Text `json:"title"`
	// Needs lists the capabilities that the hello of the program must claim.
	Needs []string `json:"needs,omitempty"`
	// Servers lists the backends that the lock may use. It must use one of them.
	Servers []string `json:"servers,omitempty"`
	// New lists the requirements of this exercise. Kept lists those of earlier exercises.
	New  []Requirement `json:"-"`
	Kept []Requirement `json:"-"`
}

// Requirement is a check of the contract or a hazard: one of the two names is empty.
type Requirement struct {
	Check  string
	Hazard api.Hazard
	Fenced bool // the holder uses its fencing token
}

// Name returns the name of the check or of the hazard, with " --fenced" for a fenced run.
func (r Requirement) Name() string {
	if r.Fenced {
		return string(r.Hazard) + " --fenced"
	}
	return r.Check + string(r.Hazard)
}

// Requirements returns all requirements: the new ones last, in their order.
func (e Exercise) Requirements() []Requirement { return slices.Concat(e.Kept, e.New) }

// Page returns the file name of the exercise's page in docs/exercises, without its ending.
func (e Exercise) Page() string { return fmt.Sprintf("%02d-%s", e.Number, e.Name) }

// required returns the requirements with these names. A name that is no hazard's is that of a check.
func required(names ...string) (all []Requirement) {
	for _, name := range names {
		r := Requirement{Check: name}
		hazard, fenced := strings.CutSuffix(name, " --fenced")
		if e, known := experiment.Of(api.Hazard(hazard)); known {
			r = Requirement{Hazard: e.Hazard, Fenced: fenced}
		}
		all = append(all, r)
	}
	return all
}

// Exercises returns the exercises in the tutorial's order.
func Exercises() []Exercise {
	onRedis := []string{"redis", "redlock"}
	anywhere := []string{"redis", "redlock", "zookeeper", "etcd", "mysql"}
	excludes := required("race", "replica-race", "time-out", "keys", "exclusion", "exclusion-across", "cancellation", "clean-up")
	first := slices.Concat(excludes, required("crash", "crash-between", "unnoticed-expiry", "expiry", "lease-length"))
	owned := slices.Concat(first, required("release", "foreign-unlock", "same-process", "names"))
	safe := slices.Concat(owned, required("late-release"))
	// The hazards of exercise 9 take long, so those between two commands are left out there.
	checked := slices.DeleteFunc(slices.Clone(safe), func(r Requirement) bool {
		return slices.Contains([]api.Hazard{"crash-between", "foreign-unlock", "late-release"}, r.Hazard)
	})
	return []Exercise{{
		Number: 1, Name: "expiry", Title: api.Text{EN: "SETNX that cannot deadlock", ZH: "不会死锁的 SETNX"}, Needs: []string{"lease"}, Servers: onRedis,
		New: first,
	}, {
		Number: 2, Name: "owner", Title: api.Text{EN: "Only the owner unlocks", ZH: "只有持有者才能解锁"}, Needs: []string{"lease"}, Servers: onRedis,
		Kept: first, New: owned[len(first):],
	}, {
		Number: 3, Name: "compare-and-delete", Title: api.Text{EN: "Compare and delete in one step", ZH: "比较和删除合为一步"}, Needs: []string{"lease"}, Servers: onRedis,
		Kept: owned, New: required("late-release"),
	}, {
		Number: 4, Name: "re-entry", Title: api.Text{EN: "Re-entry", ZH: "可重入"}, Needs: []string{"lease", "reentry"}, Servers: onRedis,
		Kept: safe, New: required("re-entry", "nesting"),
	}, {
		Number: 5, Name: "renewal", Title: api.Text{EN: "Renewal", ZH: "自动续期"}, Needs: []string{"lease", "lease_per_request", "renewal"}, Servers: onRedis,
		Kept: safe, New: required("renewal", "renewal-end", "no-renewal", "overrun"),
	}, {
		Number: 6, Name: "loss", Title: api.Text{EN: "Notice a loss", ZH: "发现锁已丢失"}, Needs: []string{"lease", "lease_per_request", "loss_notice"}, Servers: onRedis,
		Kept: safe, New: required("renewal", "no-renewal", "loss-notice", "late-receipt", "cutoff", "late-answer"),
	}, {
		Number: 7, Name: "wake-up", Title: api.Text{EN: "Wake up instead of polling", ZH: "用唤醒代替轮询"}, Servers: anywhere,
		Kept: safe, New: required("polling", "herd", "missed-release", "waiter-reset"),
	}, {
		Number: 8, Name: "fair", Title: api.Text{EN: "First come, first served", ZH: "先来先得"}, Needs: []string{"fairness"}, Servers: anywhere,
		Kept: safe, New: required("order", "dead-waiter"),
	}, {
		Number: 9, Name: "fail-over", Title: api.Text{EN: "Survive a fail-over", ZH: "经得起主从切换"}, Servers: []string{"redlock", "zookeeper", "etcd"},
		Kept: checked, New: required("partition", "failover", "minority-loss", "majority-loss"),
	}, {
		Number: 10, Name: "fence", Title: api.Text{EN: "Fencing tokens", ZH: "栅栏令牌"}, Needs: []string{"fence"}, Servers: anywhere,
		Kept: safe, New: required("fence", "fenced-write", "amnesia", "pause --fenced", "pause-at-read --fenced"),
	}}
}

// Find returns the exercise with this number or name.
func Find(name string) (Exercise, error) {
	all := Exercises()
	if number, err := strconv.Atoi(name); err == nil && number >= 1 && number <= len(all) {
		return all[number-1], nil
	}
	return suggest.Find("exercise", strings.ToLower(name), all, func(e Exercise) string { return e.Name })
}
