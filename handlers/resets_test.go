package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig/rigtest"
)

// strategiesOf returns the cards that the test asks for, in nightly all.
func strategiesOf(t *testing.T, at clients, some ...string) (cards []api.Card) {
	t.Helper()
	cards, err := at.Target.Cards(t.Context())
	must(t, err)
	return slices.DeleteFunc(cards, func(c api.Card) bool {
		return !c.Safe || c.Scope != api.ScopeShared || !rigtest.IsNightly() && !slices.Contains(some, c.ID)
	})
}

// TestPausedAcrossReset pauses a sale at each of its steps, resets the stock from 100 to 50, and sells with another
// replica. The first sale must come before the reset, after the second sale, or not at all. A sale that is paused
// with its lock, which the reset deletes, goes on when the second sale has read the count. Some locks
// do not protect from that hazard, operator.
func TestPausedAcrossReset(t *testing.T) {
	at := labClients(t)
	for _, card := range strategiesOf(t, at, "for-update", "version", "redis", "redis-fair", "cohort-redis", "redlock", "zk", "etcd", "db-row", "get-lock") {
		for _, step := range []api.Step{api.Granted, api.Read, api.Writing} {
			for _, fenced := range []bool{false, true} {
				if (card.Fenced || !fenced) && (step != api.Granted || slices.Contains(card.Protects, api.Operator)) {
					t.Run(fmt.Sprintf("%s/%s/fenced=%v", card.ID, step, fenced), func(t *testing.T) {
						acrossReset(t, at, card.ID, step, fenced)
					})
				}
			}
		}
	}
}

func acrossReset(t *testing.T, at clients, strategy string, step api.Step, fenced bool) {
	const product = 4711
	first, second := at.Replicas[0], at.Replicas[1]
	defer func() {
		must(t, errors.Join(first.ResumeAll(context.Background()), second.ResumeAll(context.Background())))
	}()
	must(t, at.Target.SetStock(t.Context(), product, 100))
	sell := func(c api.Client, step api.Step) <-chan reply {
		if step != "" {
			must(t, c.Arm(t.Context(), api.Failpoint{Strategy: strategy, Product: product, Step: step}))
		}
		answers := make(chan reply, 1)
		go func() {
			r, _ := exchange(t.Context(), http.MethodGet, c.Base, checkLock(strategy, fmt.Sprintf("product=%d&fenced=%v&wait=5s", product, fenced)))
			answers <- r
		}()
		rigtest.Eventually(t, "the sale is paused or answered", func() (bool, string) {
			paused, err := c.Paused(t.Context())
			return len(paused)+len(answers) == 1, fmt.Sprintf("%+v, %v", paused, err)
		})
		return answers
	}
	a := sell(first, step)
	reset := make(chan error, 1)
	go func() { reset <- at.Target.SetStock(t.Context(), product, 50) }()
	select {
	case err := <-reset:
		must(t, err)
	case <-time.After(2 * time.Second): // the sale has locked the row, so the reset waits for it
		must(t, first.ResumeAll(t.Context()))
		must(t, <-reset)
	}
	then := api.Step("") // the second sale ends before the first goes on
	if step == api.Granted {
		then = api.Read
	}
	b := sell(second, then)
	must(t, first.ResumeAll(t.Context()))
	one := <-a
	must(t, second.ResumeAll(t.Context()))
	two := <-b
	least, most := 0, 0
	for _, r := range []reply{one, two} {
		if r.HTTP == http.StatusOK {
			if r.Remaining > 0 && r.Remaining < 50 {
				least++
			}
			if r.Remaining < 50 { // of the new count, or 0: uncounted
				most++
			}
		}
	}
	n, err := at.Target.Count(t.Context(), strategy, product)
	if taken := 50 - n; err != nil || taken < least || taken > most || two.HTTP != http.StatusOK && one.HTTP != http.StatusOK {
		t.Errorf("%d taken, %v; want %d to %d\nfirst: %+v\nsecond: %+v", taken, err, least, most, one, two)
	}
}

// TestResetsUnderLoad resets the stock while three replicas sell. The pieces that are missing from the new count
// must be at least the sales that began after the reset, and at most those that ended after its beginning.
func TestResetsUnderLoad(t *testing.T) {
	at := labClients(t)
	resets := 5
	if rigtest.IsNightly() {
		resets = 100
	}
	for i, card := range strategiesOf(t, at, "redis-stock", "redis-watch", "buckets", "skip-locked", "reservation", "version", "combining", "redis") {
		t.Run(card.ID, func(t *testing.T) { resetsUnderLoad(t, at, card.ID, int64(5000+i), resets) })
	}
}

func resetsUnderLoad(t *testing.T, at clients, strategy string, product int64, resets int) {
	const pieces = 5000
	must(t, at.Target.SetStock(t.Context(), product, pieces))
	for n := range resets {
		var mu sync.Mutex
		type span struct{ began, ended time.Time }
		var sold []span
		selling, stop := context.WithCancel(t.Context())
		var buyers sync.WaitGroup
		for _, replica := range at.Replicas {
			buyers.Go(func() {
				for selling.Err() == nil {
					began := time.Now()
					// Not with selling: a sale must not be cancelled.
					r, err := exchange(t.Context(), http.MethodGet, replica.Base, checkLock(strategy, fmt.Sprintf("product=%d", product)))
					mu.Lock()
					if err == nil && r.HTTP == http.StatusOK {
						sold = append(sold, span{began, time.Now()})
					}
					mu.Unlock()
				}
			})
		}
		enough := func(more int) {
			mu.Lock()
			want := len(sold) + more
			mu.Unlock()
			rigtest.Eventually(t, "more sales", func() (bool, string) {
				mu.Lock()
				defer mu.Unlock()
				return len(sold) >= want, fmt.Sprintf("%d of %d", len(sold), want)
			})
		}
		enough(6)
		began := time.Now()
		err := at.Target.SetStock(t.Context(), product, pieces)
		ended := time.Now()
		enough(6)
		stop()
		buyers.Wait()
		must(t, err)
		least, most := 0, 0
		for _, s := range sold {
			if s.began.After(ended) {
				least++
			}
			if s.ended.After(began) {
				most++
			}
		}
		left, err := at.Target.Count(t.Context(), strategy, product)
		if taken := pieces - left; err != nil || taken < least || taken > most {
			t.Errorf("reset %d: %d taken, %v; want %d to %d", n, taken, err, least, most)
		}
	}
}
