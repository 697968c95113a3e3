package handlers

import (
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
	"oversell/stock"
)

const (
	// maxPause ends a pause after the lab has died. A teacher has enough time to explain the step.
	maxPause = 30 * time.Minute
	// maxKey limits the length of a failpoint's key, in bytes.
	maxKey = 200
	// maxSenders limits the requests whose commands are kept.
	maxSenders = 100
)

type paused struct {
	api.Paused
	resumed chan struct{}
}

// failpoints act at the steps that strategies report, so strategies contain no code for failpoints.
type failpoints struct {
	mu    sync.Mutex
	last  int
	armed []*api.Failpoint
	held  []*paused
	// senders are the requests whose commands are recorded, until the failpoints are cleared.
	senders []sender
}

type sender struct {
	owner, key string
	commands   *stock.Commands
}

func (f *failpoints) arm(p api.Failpoint) api.Failpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	p.ID = f.last
	f.armed = append(f.armed, &p)
	return p
}

func (f *failpoints) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.armed) > 0
}

func (f *failpoints) stop(strategy string, e api.Event) {
	do, s := f.reach(strategy, e)
	switch do {
	case api.DoDie:
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // no other code may run before the process ends
	case api.DoPause:
		// The request stays paused if its client goes: a really paused process would not notice.
		select {
		case <-s.resumed:
		case <-time.After(maxPause):
			f.resume(e.Owner)
		}
	}
}

// reach finds the first failpoint that matches, counts its use, and returns its action.
func (f *failpoints) reach(strategy string, e api.Event) (do api.Action, s *paused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.armed, func(p *api.Failpoint) bool {
		return concerns(p, strategy, e.Key) && (p.Step == "" || p.Step == e.Step)
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
			api.Paused{Owner: e.Owner, Strategy: strategy, Key: e.Key, Step: e.Step, Fence: e.Fence, Since: e.At, Commands: f.sent(e.Owner)},
			make(chan struct{}),
		}
		f.held = append(f.held, s)
	}
	return p.Do, s
}

// concerns reports whether the failpoint acts on the requests of a strategy with this key.
func concerns(p *api.Failpoint, strategy, key string) bool {
	return p.Key != "" && p.Key == key || p.Strategy == strategy && api.Key(p.Product) == key
}

// record returns the recorder of the request's commands, or nil if no failpoint asks for them.
func (f *failpoints) record(strategy, key, owner string) *stock.Commands {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.armed, func(p *api.Failpoint) bool { return p.Commands && concerns(p, strategy, key) }) {
		return nil
	}
	commands := &stock.Commands{}
	f.senders = append(f.senders[max(0, len(f.senders)-maxSenders+1):], sender{owner, key, commands})
	return commands
}

// sent returns the owner's commands since the last call of sent.
func (f *failpoints) sent(owner string) []string {
	i := slices.IndexFunc(f.senders, func(s sender) bool { return s.owner == owner })
	if i < 0 {
		return nil
	}
	defer f.senders[i].commands.Clear()
	return f.senders[i].commands.List()
}

// resume ends the pause of the owner's request. It returns false if no such request is paused.
func (f *failpoints) resume(owner string) bool {
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

func (f *failpoints) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.held {
		close(s.resumed)
	}
	f.held, f.armed, f.senders = nil, nil, nil
}

func (f *failpoints) state() api.Failpoints {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := api.Failpoints{Armed: []api.Failpoint{}, Paused: []api.Paused{}, Senders: []api.Sender{}}
	for _, p := range f.armed {
		state.Armed = append(state.Armed, *p)
	}
	for _, s := range f.held {
		state.Paused = append(state.Paused, s.Paused)
	}
	for _, s := range f.senders {
		if !slices.ContainsFunc(f.held, func(p *paused) bool { return p.Owner == s.owner }) {
			state.Senders = append(state.Senders, api.Sender{Owner: s.owner, Key: s.key, Commands: s.commands.List()})
		}
	}
	return state
}

func (s *Service) routeFailpoints() {
	if !s.Lab {
		return
	}
	s.engine.GET("/lab/failpoints", s.labOnly, s.answer(s.getFailpoints))
	s.engine.POST("/lab/failpoints", s.labOnly, s.answer(s.postFailpoint))
	s.engine.DELETE("/lab/failpoints", s.labOnly, s.answer(s.deleteFailpoints))
	s.engine.POST("/lab/stopped/:owner/go", s.labOnly, s.answer(s.resume))
}

func (s *Service) getFailpoints(*gin.Context) (any, error) { return s.failpoints.state(), nil }

// postFailpoint arms a failpoint for the requests that arrive later.
func (s *Service) postFailpoint(c *gin.Context) (any, error) {
	p := api.Failpoint{Do: api.DoPause, Times: 1}
	in := json.NewDecoder(io.LimitReader(c.Request.Body, 1024))
	in.DisallowUnknownFields()
	err := in.Decode(&p)
	switch _, known := s.byID[p.Strategy]; {
	case err != nil:
		return nil, badParameter("body", err.Error(), api.Text{
			EN: `like {"strategy":"redis","product":1,"step":"writing"}`, ZH: `形如 {"strategy":"redis","product":1,"step":"writing"}`,
		})
	case p.Key != "" && (p.Strategy != "" || p.Product != 0 || len(p.Key) > maxKey):
		return nil, badParameter("key", p.Key, api.Textf("without strategy and product, and at most %d bytes long", "不与 strategy、product 一起给，最多 %d 字节", maxKey))
	case p.Key == "" && !known:
		return nil, badParameter("strategy", p.Strategy, api.Text{EN: "the id of a strategy", ZH: "一个策略的 id"})
	case p.Key == "" && p.Product < 1:
		return nil, badParameter("product", fmt.Sprint(p.Product), api.Text{EN: "a whole number from 1", ZH: "从 1 起的整数"})
	case p.Do != api.DoPause && p.Do != api.DoDie:
		return nil, badParameter("do", string(p.Do), api.Text{EN: "pause or die", ZH: "pause 或 die"})
	case p.Times < 1 || p.Times > 10_000:
		return nil, badParameter("times", fmt.Sprint(p.Times), api.Text{EN: "a whole number from 1 to 10000", ZH: "1 到 10000 的整数"})
	case len(p.Step) > maxName:
		return nil, badParameter("step", string(p.Step), api.Text{EN: "the name of a step, or left out for every step", ZH: "一个步骤的名称；不写则表示每个步骤"})
	}
	return s.failpoints.arm(p), nil
}

func (s *Service) deleteFailpoints(*gin.Context) (any, error) {
	s.failpoints.clear()
	return s.failpoints.state(), nil
}

func (s *Service) resume(c *gin.Context) (any, error) {
	if owner := c.Param("owner"); !s.failpoints.resume(owner) {
		return nil, refuse(http.StatusNotFound, api.BadRequest, "the request of owner %s is not paused on this replica", "持有者 %s 的请求没有停在这个副本上", short(owner))
	}
	return s.failpoints.state(), nil
}
