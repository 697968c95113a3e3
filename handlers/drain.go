package handlers

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
)

// retryStatus is the header with which a balancer names the status that makes it send a request to
// another replica. The only value that a replica knows is 502: no handler answers with it. nginx
// stops sending requests to a replica that answers so, for fail_timeout. So the status may not be
// 503 or 429, with which all replicas answer if, for example, Redis is down.
const retryStatus = "X-Retry-Status"

// nginx sends a request to a replica that has rejected one after fail_timeout, 1 s, at the earliest.
// So between safeFrom and safeUntil after a rejection, no request is on its way.
const (
	safeFrom  = 200 * time.Millisecond
	safeUntil = 800 * time.Millisecond
	// retryAfter is more than the time after which nginx tries a rejecting replica again.
	retryAfter = 2500 * time.Millisecond
)

type drain struct {
	began    atomic.Bool
	rejected atomic.Int64 // when the last request was rejected, in Unix nanoseconds; 0 means never
}

// Drain prepares the end of the replica, and returns when it may stop listening: after d, or up to
// 2.5 s later. With d = 0 it returns at once. Meanwhile /readyz answers 503, each answer closes its
// connection, and requests are served, unless their balancer sends them elsewhere: see retryStatus.
//
// DANGER: a server that stops closes its idle connections, and those that it has not accepted yet.
// A balancer may have sent a request on one of them. It gets no answer, cannot know whether the
// request was executed, and must not send it again. So the balancer must stop sending first.
func (s *Service) Drain(d time.Duration) {
	s.drain.began.Store(true)
	if d == 0 {
		return
	}
	time.Sleep(d)
	for end := time.Now().Add(retryAfter); time.Now().Before(end) && !s.drain.safe(time.Now()); {
		time.Sleep(10 * time.Millisecond)
	}
}

// safe reports whether no balancer that sends rejected requests elsewhere sends one now. If none was
// rejected yet, there is no load, or another balancer.
func (d *drain) safe(now time.Time) bool {
	last := d.rejected.Load()
	age := now.Sub(time.Unix(0, last))
	return last == 0 || age >= safeFrom && age <= safeUntil
}

// rejectDraining rejects requests that the balancer then sends to another replica. A lock by hand
// can only be released at the replica that has it.
func (s *Service) rejectDraining(c *gin.Context) {
	if !s.drain.began.Load() {
		return
	}
	c.Header("Connection", "close")
	if retries(c) && !releases(c.Request.URL.Path) {
		s.problem(c, refuse(http.StatusBadGateway, api.Unavailable,
			"this replica is stopping, and nothing was done", "这个副本正在停止，什么也没有做"))
		s.drain.rejected.Store(time.Now().UnixNano())
	}
}

// retries reports whether the balancer sends a request with the answer 502 to another replica.
func retries(c *gin.Context) bool { return c.GetHeader(retryStatus) == "502" }

// abandoned reports whether the replica has cancelled a request because it took too long to stop,
// for example a request that waited for a lock. If it took nothing, another replica can serve it.
func (s *Service) abandoned(c *gin.Context) bool {
	return s.drain.began.Load() && c.Request.Context().Err() != nil && retries(c)
}
