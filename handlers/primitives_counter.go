package handlers

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// counted answers op=get, changed all the others.
type counted struct {
	done
	locks.Count
}

type changed struct {
	done
	locks.Changed
	// Version is the counter's when this is answered: a rival may have raised it
	// further. It is left out when it could not be read.
	Version *int64 `json:"version,omitempty"`
}

var counterOps = []string{"get", "increment", "decrement", "add", "subtract", "try-set", "force-set", "compare-and-set"} //nolint:gochecknoglobals // constant

func hasCounter(p locks.Primitives) bool { return p.Counter != nil }

// testCounter reads or changes a counter that all replicas share (4.6.7). As with
// Curator, whoever changes it must look at "succeeded": a set that a rival beat is
// an answer, 200, and no error.
func (s *Service) testCounter(c *gin.Context) {
	v := s.visit(c, hasCounter, "op", "value", "expect", "wait")
	op := v.counterOp()
	if v.refused() {
		return
	}
	if op == nil {
		count, err := v.primitives.Counter.Get(v.context(), v.request.Key)
		if !v.failed(err) {
			v.gin.JSON(http.StatusOK, counted{v.done(api.WasRead), count})
		}
		return
	}
	change, err := op(v.context(), v.primitives.Counter)
	if v.failed(err) {
		return
	}
	v.granted = time.Now()
	outcome := api.Unchanged
	if change.Succeeded {
		outcome = api.Changed
	}
	answer := changed{done: v.done(outcome), Changed: change}
	// It was changed, so whatever happens now is no failure.
	if count, err := v.primitives.Counter.Get(v.context(), v.request.Key); err == nil {
		answer.Version = &count.Version
	}
	v.gin.JSON(http.StatusOK, answer)
}

type change func(context.Context, locks.Counter) (locks.Changed, error)

// counterOp reads the operation with what belongs to it, and nothing else; nil
// is get.
func (v *visit) counterOp() change {
	op := v.text("op", "get")
	if !slices.Contains(counterOps, op) {
		v.fail("op", op, "one of "+strings.Join(counterOps, ", "))
	}
	value := v.operand("value", op, "add", "subtract", "try-set", "force-set", "compare-and-set")
	expect := v.operand("expect", op, "compare-and-set")
	adds := []string{"increment", "decrement", "add", "subtract"}
	if v.values.Has("wait") && !slices.Contains(adds, op) {
		v.fail("wait", v.text("wait", ""), "left out with op="+op+", which never waits; it is for "+strings.Join(adds, ", "))
	}
	v.waits()
	r := v.request
	add := func(delta int64) change {
		return func(ctx context.Context, c locks.Counter) (locks.Changed, error) { return c.Add(ctx, r, delta) }
	}
	switch op {
	case "increment":
		return add(1)
	case "decrement":
		return add(-1)
	case "add":
		return add(value)
	case "subtract":
		return add(-value)
	case "try-set":
		return func(ctx context.Context, c locks.Counter) (locks.Changed, error) { return c.TrySet(ctx, r.Key, value) }
	case "force-set":
		return func(ctx context.Context, c locks.Counter) (locks.Changed, error) {
			return c.ForceSet(ctx, r.Key, value)
		}
	case "compare-and-set":
		return func(ctx context.Context, c locks.Counter) (locks.Changed, error) {
			return c.CompareAndSet(ctx, r.Key, expect, value)
		}
	}
	return nil
}

// operand reads a number that the operations of may need, and others must not have.
func (v *visit) operand(name, op string, of ...string) int64 {
	needed := slices.Contains(of, op)
	if !needed && v.values.Has(name) {
		v.fail(name, v.text(name, ""), "left out with op="+op+"; it is for "+strings.Join(of, ", "))
	}
	if !needed {
		return 0
	}
	low := int64(math.MinInt64)
	if op == "subtract" {
		low++ // there is no negative of the lowest
	}
	return v.needed(name, low, math.MaxInt64)
}

// streamCounter sends the counter's value now and after changes, each as one
// data line of a server-sent event, until the client goes. Who reads too slowly
// misses values in between, never the last one.
func (s *Service) streamCounter(c *gin.Context) {
	v := s.visit(c, hasCounter)
	if v.refused() {
		return
	}
	leave, ok := s.mayStream(c)
	if !ok {
		return
	}
	defer leave()
	ctx, end := context.WithCancel(v.context())
	defer end()
	counts, err := v.primitives.Counter.Watch(ctx, v.request.Key)
	if v.failed(err) {
		return
	}
	v.observe("watched")
	c.Header("Cache-Control", "no-store")
	c.Header("X-Accel-Buffering", "no")
	stream(ctx, s, c, counts, func(count locks.Count) { c.SSEvent("", count) })
}
