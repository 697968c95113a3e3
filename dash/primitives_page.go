package dash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/dash/hub"
)

// The requests of primitivesPage are no jobs: users need many at once, but only one job can run.
type primitivesPage struct {
	s        *Server
	http     *http.Client
	prefix   string         // begins each visitor's tag; differs after each restart of the page
	requests sync.WaitGroup // also streams and redraws

	// The hub's mutex protects the fields below: see hub.Send.
	streams    *streams // nil while no request is in progress
	visitors   []*visitor
	next       int
	inProgress int
	observed   map[target]observed
}

// visitor is one request. In a double barrier, it is a member with two requests: enter and leave.
type visitor struct {
	order
	N       int
	Tag     string // the owner or the visitor in the steps of the request
	As      string // the action as which it is counted while it holds
	Replica string
	State   state
	Spans   []span
	Said    api.Text // the outcome
}

type state string

const (
	sent    state = "sent" // no replica has reported a step yet
	waiting state = "waiting"
	holding state = "holding"
	leaving state = "leaving" // inside a double barrier, waiting to leave
	gone    state = "gone"
	failed  state = "failed"
)

func (v *visitor) over() bool { return v.State == gone || v.State == failed }

// span is a time of waiting for a primitive or holding it. to is zero until the span ends.
type span struct {
	state    state
	from, to time.Time
}

type target struct{ Primitive, Backend, Name string }

// observed is the state of a target (a named primitive), as far as the last answers show it.
type observed struct {
	Left    *int64 // of a latch
	Up      string // whether a barrier exists: yes, no, or empty if unknown
	Value   *int64 // of a counter
	Version int64  // of the value
	at      time.Time
}

const (
	redrawInterval = 200 * time.Millisecond
	maxVisitors    = 60 // visitors in progress
	maxOver        = 40 // visitors on the page, above which those that are over are removed
	overShown      = 30 * time.Second
	// streamWait limits the wait for the replicas' streams. Without them, only answers are shown.
	streamWait = 2 * time.Second
)

func newPrimitivesPage(s *Server) *primitivesPage {
	t := &primitivesPage{
		s: s, prefix: "v-" + strconv.FormatInt(time.Now().UnixMilli(), 36) + "-", observed: map[target]observed{},
		// One request may wait for one minute, and then hold for another minute.
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxVisitors}, Timeout: 150 * time.Second},
	}
	s.hub.Open("primitives", t.all)
	s.page("/dash/course/primitives", "primitives", func(r *http.Request) (view, error) {
		cards, _ := s.catalogue.all(r.Context()) // without an answer, the page offers no strategies
		data := struct {
			Primitives []primitive
			NoStreams  bool
			Cards      []api.Card
		}{primitives(), len(s.Lab.Replicas) == 0, cards}
		return view{Page: "course", Topic: "primitives", Title: bilingual("Primitives", "同步原语"), Data: data}, nil
	})
	s.routes.HandleFunc("POST /dash/course/primitives/send", s.withToken(t.send))
	s.routes.HandleFunc("POST /dash/course/primitives/clear", s.withToken(t.clear))
	return t
}

func (t *primitivesPage) send(_ context.Context, req *http.Request) error {
	o, err := orderOf(req)
	if err != nil {
		return err
	}
	t.s.hub.Send("primitives", func() []hub.Message {
		var visitors []*visitor
		if visitors, err = t.visitorsFor(o); err != nil {
			return nil
		}
		if t.streams == nil {
			t.streams = t.openStreams()
		}
		t.inProgress += len(visitors)
		for _, v := range visitors {
			query := maps.Clone(o.query)
			query.Set("visitor", v.Tag)
			if v.Action.Stays && !v.Action.ByHand {
				query.Set("owner", v.Tag)
			}
			streams := t.streams
			t.requests.Go(func() { t.request(streams, v, o.Action, query) })
		}
		return t.all()
	})
	return err
}

// visitorsFor returns new visitors, or for the action leave the oldest in the double barrier.
func (t *primitivesPage) visitorsFor(o order) (visitors []*visitor, err error) {
	// An unlock by the owner of a lock ends the newest visitor that holds it. An unlock by any other owner is a
	// visitor of its own, which is rejected.
	if o.Action.ByHand && !o.Action.Holds && o.many == 1 {
		for _, v := range slices.Backward(t.visitors) {
			if v.State == holding && v.At == o.At && v.Owner == o.Owner {
				return []*visitor{v}, nil
			}
		}
	}
	now, here := time.Now(), 0
	for _, v := range t.visitors {
		if !v.over() {
			here++
		}
		if o.Action.ID == "leave" && v.State == holding && v.Action.Stays && v.At == o.At && len(visitors) < o.many {
			v.enter(leaving, now)
			visitors = append(visitors, v)
		}
	}
	switch {
	case o.Action.ID == "leave" && len(visitors) == 0:
		return nil, reject(http.StatusConflict, "No member is inside. Let members enter first.", "里面没有成员。请先让成员进入。")
	case o.Action.ID == "leave":
		return visitors, nil
	case here+o.many > maxVisitors:
		return nil, reject(http.StatusConflict, "%d requests are in progress, and at most %d are allowed. Wait until some have ended.", "已有 %d 个请求在进行，最多允许 %d 个。请等一些请求结束。", here, maxVisitors)
	}
	t.removeOld()
	for range o.many {
		t.next++
		v := &visitor{N: t.next, Tag: t.prefix + strconv.Itoa(t.next), order: o, As: cmp.Or(o.Action.As, o.Action.ID)}
		v.enter(sent, now)
		visitors = append(visitors, v)
	}
	t.visitors = append(t.visitors, visitors...)
	return visitors, nil
}

func (t *primitivesPage) removeOld() {
	extra := len(t.visitors) - maxOver
	t.remove(func(v *visitor) bool {
		if !v.over() {
			return false
		}
		extra--
		return extra >= 0 || time.Since(v.Spans[len(v.Spans)-1].to) > overShown
	})
}

func (t *primitivesPage) remove(which func(*visitor) bool) {
	t.visitors = slices.DeleteFunc(t.visitors, which)
	maps.DeleteFunc(t.observed, func(at target, _ observed) bool {
		return !slices.ContainsFunc(t.visitors, func(v *visitor) bool { return v.At == at })
	})
}

func (t *primitivesPage) clear(context.Context, *http.Request) error {
	t.s.hub.Send("primitives", func() []hub.Message { t.remove((*visitor).over); return t.all() })
	return nil
}

type answer struct {
	Outcome  api.Outcome `json:"outcome"`
	Replica  string      `json:"replica"`
	Detail   string      `json:"detail"`
	WaitedMS float64     `json:"waited_ms"`
	Left     *int64      `json:"left"`
	Value    *int64      `json:"value"`
	After    *int64      `json:"after"`
	Version  int64       `json:"version"`
	Count    *int64      `json:"count"`
	LeaseMS  float64     `json:"lease_ms"`
	rejected bool
}

func (t *primitivesPage) request(streams *streams, v *visitor, a action, query url.Values) {
	<-streams.ready.Done()
	begun := time.Now()
	t.s.hub.Do(func() {
		if v.State == sent { // the time until the streams are open is no wait for the primitive
			v.Spans[0].from = begun
		}
	})
	var got answer
	nginx := api.Client{Base: t.s.Lab.Target, HTTP: t.http}
	err := nginx.Call(t.s.lifetime, http.MethodPost, "/test/"+a.Path+"?"+query.Encode(), nil, &got)
	if rejected := (*api.Error)(nil); errors.As(err, &rejected) && rejected.Problem.Outcome != "" {
		p := rejected.Problem
		got, err = answer{Outcome: p.Outcome, Replica: p.Replica, Detail: p.Detail, WaitedMS: p.WaitedMS, rejected: true}, nil
	}
	t.s.hub.Send("primitives", func() []hub.Message {
		now := time.Now()
		v.answered(a, got, err, begun, now)
		t.observe(v.At, got, begun, now)
		if got.LeaseMS > 0 && v.State == holding {
			t.endWithLease(v, time.Duration(got.LeaseMS*float64(time.Millisecond)))
		}
		if t.inProgress--; t.inProgress == 0 {
			t.streams.stop()
			t.streams = nil
		}
		return t.all()
	})
}

// endWithLease ends a lock by hand when its lease is over, unless it was unlocked before.
func (t *primitivesPage) endWithLease(v *visitor, lease time.Duration) {
	t.requests.Go(func() {
		select {
		case <-time.After(lease):
		case <-t.s.lifetime.Done():
			return
		}
		t.s.hub.Send("primitives", func() []hub.Message {
			if v.State == holding {
				v.Said = bilingual("its lease has ended", "租期已到，自动解锁")
				v.enter(gone, time.Now())
			}
			return t.all()
		})
	})
}

// stepped updates a visitor by a step of its request. The answer may arrive before the step.
func (v *visitor) stepped(step api.Step, replica string, at time.Time) {
	v.Replica = replica
	switch {
	case step == api.Asked && v.State == sent:
		v.enter(waiting, at)
	case step == api.Granted && v.Action.Holds && (v.State == waiting || v.State == sent):
		v.enter(holding, at)
	case step == "downgraded":
		v.As = "read"
	case step == api.Released && v.State == holding && !v.Action.Stays:
		v.enter(gone, at)
	}
}

func (v *visitor) enter(next state, at time.Time) {
	if n := len(v.Spans); n > 0 && v.Spans[n-1].to.IsZero() {
		v.Spans[n-1].to = at
	}
	if v.State = next; !v.over() {
		v.Spans = append(v.Spans, span{state: next, from: at})
	}
}

// answered updates a visitor by its answer. The answer also replaces steps that did not arrive.
func (v *visitor) answered(a action, got answer, err error, begun, now time.Time) {
	v.Replica = cmp.Or(got.Replica, v.Replica)
	said, good := describe(got)
	if v.Said = said; err != nil {
		v.Said = failure(err)
	}
	switch {
	case err != nil || !good:
		v.enter(failed, now)
	case a.Stays && v.State == holding: // a step has arrived before the answer
	case a.Stays:
		v.enter(holding, now)
	case a.Holds && (v.State == sent || v.State == waiting):
		v.enter(holding, begun.Add(time.Duration(got.WaitedMS*float64(time.Millisecond))))
		v.enter(gone, now)
	case v.State != gone:
		v.enter(gone, now)
	}
}

func describe(a answer) (said api.Text, good bool) {
	number := "?"
	if n := cmp.Or(a.After, a.Value, a.Left, a.Count); n != nil {
		number = strconv.FormatInt(*n, 10)
	}
	if said := a.Outcome.Says(number); said.EN != "" {
		return said, !a.rejected
	}
	return api.Textf("%s: %s", "没有成功（%s）：%s", a.Outcome, a.Detail), false
}

// Concurrent answers arrive in any order: the newer has a lower latch count or a higher version.
func (t *primitivesPage) observe(at target, got answer, begun, now time.Time) {
	o := t.observed[at]
	later := begun.After(o.at)
	value := cmp.Or(got.After, got.Value)
	switch {
	case got.Left != nil:
		if later || o.Left == nil || *got.Left < *o.Left {
			o.Left = got.Left
		}
	case got.Outcome == api.Set || got.Outcome == api.WasSet:
		o.Up = "yes"
	case got.Outcome == api.Removed || got.Outcome == api.WasNotSet:
		o.Up = "no"
	case value != nil:
		if later || got.Version > o.Version {
			o.Value, o.Version = value, got.Version
		}
	default:
		return
	}
	o.at = now
	t.observed[at] = o
}

// all returns the messages that draw the whole page. The hub's mutex must be locked.
func (t *primitivesPage) all() []hub.Message {
	return []hub.Message{t.s.part("primitives", "places", t.views())}
}

// streams receives the steps of all replicas while requests of this page are in progress.
type streams struct {
	ready context.Context // done when all streams are open, or streamWait has passed
	stop  context.CancelFunc
}

func (t *primitivesPage) openStreams() *streams {
	ctx, stop := context.WithCancel(t.s.lifetime)
	var opened sync.WaitGroup
	for _, base := range t.s.Lab.Replicas {
		opened.Add(1)
		open := sync.OnceFunc(opened.Done)
		replica := api.Client{Base: base, Token: t.s.Lab.Token, HTTP: &http.Client{Transport: t.http.Transport}}
		t.requests.Go(func() {
			defer open()
			for ctx.Err() == nil {
				_ = replica.Follow(ctx, func(kind string, data []byte) {
					var e api.StepEvent
					switch {
					case kind == api.StreamHello:
						open()
					case kind == api.StreamStep && json.Unmarshal(data, &e) == nil:
						t.step(e)
					}
				})
				select {
				case <-ctx.Done():
				case <-time.After(redrawInterval):
				}
			}
		})
	}
	ready, isReady := context.WithTimeout(ctx, streamWait)
	t.requests.Go(func() { opened.Wait(); isReady() })
	t.requests.Go(func() {
		clock := time.NewTicker(redrawInterval)
		defer clock.Stop()
		for ctx.Err() == nil {
			select {
			case <-clock.C:
				t.s.hub.Send("primitives", t.all)
			case <-ctx.Done():
			}
		}
	})
	return &streams{ready, stop}
}

// step updates the visitor to which a step belongs. The next redraw shows the change.
func (t *primitivesPage) step(e api.StepEvent) {
	if !strings.HasPrefix(e.Owner, t.prefix) {
		return
	}
	t.s.hub.Do(func() {
		for _, v := range t.visitors {
			if v.Tag == e.Owner {
				v.stepped(e.Step, e.Replica, time.Now())
			}
		}
	})
}
