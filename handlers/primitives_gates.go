package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// latched is the answer about a latch. Set: this request began it anew.
type latched struct {
	done
	Set  bool `json:"set"`
	Left *int `json:"left,omitempty"`
}

func hasLatch(p locks.Primitives) bool { return p.Latch != nil }

// testLatch sets the latch where it is new and waits for it to open, as the
// tutorial's monitor waits to lock the classroom (3.9.7).
func (s *Service) testLatch(c *gin.Context) {
	v := s.visit(c, hasLatch, "count", "wait")
	count := int(v.number("count", 6, 1, maxCount))
	v.waits()
	if v.refused() {
		return
	}
	set, err := v.primitives.Latch.TrySet(v.context(), v.request.Key, count)
	if v.failed(err) || v.failed(v.primitives.Latch.Await(v.context(), v.request)) {
		return
	}
	v.gin.JSON(http.StatusOK, latched{done: v.done(api.Opened), Set: set})
}

// testCountdown sets the latch where it is new and counts it down: a pupil goes.
//
// A latch that has opened is new again, here as in the tutorial: the seventh
// countdown of a latch of 6 begins the next one and leaves 5. It says so
// ("set":true); nobody who waited for the first is locked in again. Only one that
// comes in the very moment of the sixth finds the open latch and leaves 0.
func (s *Service) testCountdown(c *gin.Context) {
	v := s.visit(c, hasLatch, "count")
	count := int(v.number("count", 6, 1, maxCount))
	if v.refused() {
		return
	}
	set, err := v.primitives.Latch.TrySet(v.context(), v.request.Key, count)
	if v.failed(err) {
		return
	}
	left, err := v.primitives.Latch.CountDown(v.context(), v.request.Key)
	if v.failed(err) {
		return
	}
	outcome := api.Counted
	if left == 0 {
		outcome = api.Opened
	}
	v.gin.JSON(http.StatusOK, latched{done: v.done(outcome), Set: set, Left: &left})
}

func hasBarrier(p locks.Primitives) bool { return p.Barrier != nil }

// testBarrierSet puts the barrier up (4.6.6).
func (s *Service) testBarrierSet(c *gin.Context) {
	v := s.visit(c, hasBarrier)
	if v.refused() {
		return
	}
	set, err := v.primitives.Barrier.Set(v.context(), v.request.Key)
	if v.failed(err) {
		return
	}
	if set {
		v.answer(api.Set)
		return
	}
	v.answer(api.WasSet)
}

// testBarrierWait waits until there is no barrier.
func (s *Service) testBarrierWait(c *gin.Context) {
	v := s.visit(c, hasBarrier, "wait")
	v.waits()
	if v.refused() || v.failed(v.primitives.Barrier.Await(v.context(), v.request)) {
		return
	}
	v.answer(api.Passed)
}

// testBarrierRemove takes the barrier away: everybody goes on at once.
func (s *Service) testBarrierRemove(c *gin.Context) {
	v := s.visit(c, hasBarrier)
	if v.refused() {
		return
	}
	removed, err := v.primitives.Barrier.Remove(v.context(), v.request.Key)
	if v.failed(err) {
		return
	}
	if removed {
		v.answer(api.Removed)
		return
	}
	v.answer(api.WasNotSet)
}

func hasDoubleBarrier(p locks.Primitives) bool { return p.DoubleBarrier != nil }

// testDoubleBarrierEnter waits until so many members have entered (4.6.6). The
// owner names the member: whoever enters must leave under the same name, through
// whichever replica.
func (s *Service) testDoubleBarrierEnter(c *gin.Context) {
	v := s.visit(c, hasDoubleBarrier, "members", "owner", "wait")
	members := int(v.number("members", 3, 1, 1000))
	v.member()
	if v.refused() || v.failed(v.primitives.DoubleBarrier.Enter(v.context(), v.request, members)) {
		return
	}
	v.answer(api.Entered)
}

// testDoubleBarrierLeave waits until all who entered want to leave.
func (s *Service) testDoubleBarrierLeave(c *gin.Context) {
	v := s.visit(c, hasDoubleBarrier, "owner", "wait")
	v.member()
	if v.refused() || v.failed(v.primitives.DoubleBarrier.Leave(v.context(), v.request)) {
		return
	}
	v.answer(api.Left)
}

// member reads who enters or leaves, and how long it waits for the others.
func (v *visit) member() {
	v.request.Owner = v.word("owner", "")
	v.waits()
}
