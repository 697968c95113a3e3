package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// maxPause bounds a pause: a lab that died must not leave a request behind. A teacher
// may talk for long.
const maxPause = 30 * time.Minute

// maxKey bounds the key of a failpoint.
const maxKey = 200

// paused is a request that waits at a step until the lab resumes it.
type paused struct {
	api.Paused
	resumed chan struct{}
}

// failpoints are this replica's. They are reached through the steps that every
// strategy reports, so no strategy knows of them.
type failpoints struct {
	mu    sync.Mutex
	last  int
	armed []*api.Failpoint
	held  []*paused
}

func (f *failpoints) arm(p api.Failpoint) api.Failpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	p.ID = f.last
	f.armed = append(f.armed, &p)
	return p
}

// any says whether one is armed; if not, steps cost nothing.
func (f *failpoints) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.armed) > 0
}

// tracer stops the strategy's owners where a failpoint wants it.
func (f *failpoints) tracer(strategy string) locks.Tracer {
	return func(_ context.Context, e api.Event) {
		do, s := f.reach(strategy, e)
		switch do {
		case api.DoDie:
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {} // not one statement more
		case api.DoPause:
			// It does not listen to the request: a process that is paused does not
			// notice either that its client has gone.
			bound := time.NewTimer(maxPause)
			defer bound.Stop()
			select {
			case <-s.resumed:
			case <-bound.C:
				f.release(e.Owner)
			}
		}
	}
}

// reach uses up the failpoint for this step, if there is one.
func (f *failpoints) reach(strategy string, e api.Event) (do api.Action, s *paused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.armed, func(p *api.Failpoint) bool {
		ours := p.Key != "" && p.Key == e.Key || p.Strategy == strategy && api.Key(p.Product) == e.Key
		return ours && (p.Step == "" || p.Step == e.Step)
	})
	if i < 0 {
		return "", nil
	}
	p := f.armed[i]
	if p.Times--; p.Times == 0 {
		f.armed = slices.Delete(f.armed, i, i+1)
	}
	if p.Do == api.DoPause {
		s = &paused{
			api.Paused{Owner: e.Owner, Strategy: strategy, Key: e.Key, Step: e.Step, Fence: e.Fence, Since: e.At}, make(chan struct{}),
		}
		f.held = append(f.held, s)
	}
	return p.Do, s
}

// release lets the owner go on; false when it is not stopped.
func (f *failpoints) release(owner string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.held, func(s *paused) bool { return s.Owner == owner })
	if i < 0 {
		return false
	}
	close(f.held[i].resumed)
	f.held = slices.Delete(f.held, i, i+1)
	return true
}

// clear disarms all, and lets everybody go on.
func (f *failpoints) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.held {
		close(s.resumed)
	}
	f.held, f.armed = nil, nil
}

// state is who is waited for, and who waits.
func (f *failpoints) state() (armed []api.Failpoint, held []api.Paused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	armed, held = []api.Failpoint{}, []api.Paused{}
	for _, p := range f.armed {
		armed = append(armed, *p)
	}
	for _, s := range f.held {
		held = append(held, s.Paused)
	}
	return armed, held
}

// routeFailpoints are there for a replica of the lab only; elsewhere the routes
// do not exist.
func (s *Service) routeFailpoints() {
	if !s.Lab {
		return
	}
	s.engine.GET("/lab/failpoints", s.labOnly, s.getFailpoints)
	s.engine.POST("/lab/failpoints", s.labOnly, s.postFailpoint)
	s.engine.DELETE("/lab/failpoints", s.labOnly, s.deleteFailpoints)
	s.engine.POST("/lab/stopped/:owner/go", s.labOnly, s.letGo)
}

func (s *Service) getFailpoints(c *gin.Context) {
	armed, held := s.failpoints.state()
	c.JSON(http.StatusOK, api.Failpoints{Armed: armed, Paused: held})
}

// postFailpoint arms one, for requests that come from now on.
func (s *Service) postFailpoint(c *gin.Context) {
	p := api.Failpoint{Do: api.DoPause, Times: 1}
	in := json.NewDecoder(io.LimitReader(c.Request.Body, 1024))
	in.DisallowUnknownFields()
	var bad *paramError
	err := in.Decode(&p)
	switch _, known := s.byID[p.Strategy]; {
	case err != nil:
		bad = &paramError{"body", err.Error(), `like {"strategy":"redis","product":1,"step":"writing"}`}
	case p.Key != "" && (p.Strategy != "" || p.Product != 0 || len(p.Key) > maxKey):
		bad = &paramError{"key", p.Key, fmt.Sprintf("given without strategy and product, and no longer than %d bytes", maxKey)}
	case p.Key == "" && !known:
		bad = &paramError{"strategy", p.Strategy, "the id of a strategy"}
	case p.Key == "" && p.Product < 1:
		bad = &paramError{"product", fmt.Sprint(p.Product), "a whole number from 1"}
	case p.Do != api.DoPause && p.Do != api.DoDie:
		bad = &paramError{"do", string(p.Do), "pause or die"}
	case p.Times < 1 || p.Times > 10_000:
		bad = &paramError{"times", fmt.Sprint(p.Times), "a whole number from 1 to 10000"}
	case len(p.Step) > maxName:
		bad = &paramError{"step", string(p.Step), "the name of a step, or left out for each"}
	}
	if bad != nil {
		s.badRequest(c, bad)
		return
	}
	c.JSON(http.StatusOK, s.failpoints.arm(p))
}

func (s *Service) deleteFailpoints(c *gin.Context) {
	s.failpoints.clear()
	s.getFailpoints(c)
}

func (s *Service) letGo(c *gin.Context) {
	if owner := c.Param("owner"); !s.failpoints.release(owner) {
		s.problem(c, api.Problem{Status: http.StatusNotFound, Outcome: api.BadRequest, Detail: "nobody called " + short(owner) + " is stopped here"})
		return
	}
	s.getFailpoints(c)
}
