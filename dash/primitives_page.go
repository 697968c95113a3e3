package dash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// primitivesPage is the page on which the primitives are tried. It is no job: visitors come
// and go, and that they meet is the point.
type primitivesPage struct {
	s       *Server
	client  *http.Client
	boot    string // visitors of one life of the page are not those of another
	visits  sync.WaitGroup
	hearing *hearing // while there are visitors; changed in the hub's turn

	// What follows is changed and read in the hub's turn only: see hub.send.
	visitors []*visitor // the oldest first
	next     int
	under    int // requests under way
	facts    map[spot]fact
}

// visitor is one request, or with a double barrier one member's two.
type visitor struct {
	N       int
	Tag     string // what its steps are called
	Of      primitive
	Action  action
	Place   spot
	Permits int
	Replica string
	State   state
	Spans   []span
	Said    Text // what came of it
}

// state is where a visitor is.
type state string

const (
	sent    state = "sent"    // is not known to have arrived
	waiting state = "waiting" // wants it
	holding state = "holding" // has it
	leaving state = "leaving" // is inside a double barrier, and waits for the others to leave
	gone    state = "gone"
	failed  state = "failed"
)

func (v *visitor) over() bool { return v.State == gone || v.State == failed }

// span is a time that a visitor waited or held; to is zero while it does.
type span struct {
	state    state
	from, to time.Time
}

// spot is a primitive that visitors meet at.
type spot struct{ Primitive, Backend, Name string }

// fact is what an answer told of a place.
type fact struct {
	Left    *int   // of a latch
	Up      string // of a barrier: yes, no, or empty: not known
	Value   *int64 // of a counter
	version int64  // of the value
	at      time.Time
}

const (
	// redraw is how often the lanes grow.
	redraw = 200 * time.Millisecond
	// crowd is how many visitors may be here.
	crowd = 60
	// keepGone is how long, and mostShown how many of, those who are gone are still shown.
	keepGone  = 30 * time.Second
	mostShown = 40
)

func newPrimitivesPage(s *Server) *primitivesPage {
	t := &primitivesPage{
		s: s, boot: strconv.FormatInt(time.Now().UnixMilli(), 36), facts: map[spot]fact{},
		// A request may wait for a minute and hold for another one.
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}, Timeout: 150 * time.Second},
	}
	s.hub.open("try", t.all)
	return t
}

func (t *primitivesPage) route() {
	s := t.s
	s.routes.HandleFunc("GET /dash/try", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, r, "try", Text{"Try", "动手"}, struct {
			Primitives []primitive
			Deaf       bool
		}{primitives(), len(s.Shop.Replicas) == 0})
	})
	s.routes.HandleFunc("POST /dash/try/send", s.guarded(t.send))
	s.routes.HandleFunc("POST /dash/try/clear", s.guarded(t.clear))
}

// close returns when all visitors are gone. The server's lifetime has ended by then.
func (t *primitivesPage) close() { t.visits.Wait() }

// send sends visitors.
func (t *primitivesPage) send(_ context.Context, req request) error {
	order, err := sendingOf(req)
	if err != nil {
		return err
	}
	t.s.hub.send("try", func() []message {
		var comers []*visitor
		here := t.here()
		switch {
		case order.action.ID == "leave":
			if comers = t.inside(order); len(comers) == 0 {
				err = refusal{http.StatusConflict, Text{"Nobody is inside: let members enter first.", "里面没有人：请先让成员进入。"}}
				return nil
			}
		case here+order.many > crowd:
			err = refusal{http.StatusConflict, Text{
				fmt.Sprintf("%d are here already, and no more than %d may be.", here, crowd),
				fmt.Sprintf("已有 %d 个访客，最多只能有 %d 个。", here, crowd),
			}}
			return nil
		default:
			t.tidy()
			for range order.many {
				comers = append(comers, t.comer(order))
			}
		}
		if t.hearing == nil {
			t.hearing = t.listen()
		}
		t.under += len(comers)
		for _, v := range comers {
			query := maps.Clone(order.query)
			query.Set("visitor", v.Tag)
			if v.Action.Stays {
				query.Set("owner", v.Tag)
			}
			heard := t.hearing
			t.visits.Go(func() { t.visit(heard, v, order.action, query) })
		}
		return t.all()
	})
	return err
}

// here is how many visitors are not gone yet.
func (t *primitivesPage) here() (n int) {
	for _, v := range t.visitors {
		if !v.over() {
			n++
		}
	}
	return n
}

// comer is a new visitor.
func (t *primitivesPage) comer(order sending) *visitor {
	t.next++
	v := &visitor{
		N: t.next, Tag: fmt.Sprintf("v-%s-%d", t.boot, t.next), Of: order.of, Action: order.action,
		Place: spot{order.of.ID, order.backend, order.name}, Permits: order.permits, State: sent,
	}
	v.enter(sent, time.Now())
	t.visitors = append(t.visitors, v)
	return v
}

// inside are members that may leave, those that came first.
func (t *primitivesPage) inside(order sending) []*visitor {
	var members []*visitor
	at := spot{order.of.ID, order.backend, order.name}
	for _, v := range t.visitors {
		if v.State == holding && v.Action.Stays && v.Place == at && len(members) < order.many {
			v.enter(leaving, time.Now())
			members = append(members, v)
		}
	}
	return members
}

// tidy forgets who is gone for long, and the oldest of too many.
func (t *primitivesPage) tidy() {
	now, extra := time.Now(), len(t.visitors)-mostShown
	t.visitors = slices.DeleteFunc(t.visitors, func(v *visitor) bool {
		if !v.over() {
			return false
		}
		extra--
		return extra >= 0 || now.Sub(v.Spans[len(v.Spans)-1].to) > keepGone
	})
	t.forgetPlaces()
}

func (t *primitivesPage) forgetPlaces() {
	maps.DeleteFunc(t.facts, func(p spot, _ fact) bool {
		return !slices.ContainsFunc(t.visitors, func(v *visitor) bool { return v.Place == p })
	})
}

// clear forgets who is gone.
func (t *primitivesPage) clear(context.Context, request) error {
	t.s.hub.send("try", func() []message {
		t.visitors = slices.DeleteFunc(t.visitors, (*visitor).over)
		t.forgetPlaces()
		return t.all()
	})
	return nil
}

// told is what the service answers, with whatever the primitive has.
type told struct {
	Outcome  string  `json:"outcome"`
	Replica  string  `json:"replica"`
	Detail   string  `json:"detail"`
	WaitedMS float64 `json:"waited_ms"`
	HeldMS   float64 `json:"held_ms"`
	Left     *int    `json:"left"`
	Value    *int64  `json:"value"`
	After    *int64  `json:"after"`
	Version  int64   `json:"version"`
}

// visit is one request, from its sending to its answer.
func (t *primitivesPage) visit(heard *hearing, v *visitor, a action, query url.Values) {
	heard.wait(t.s.lifetime)
	begun := time.Now()
	t.s.hub.send("try", func() []message {
		if v.State == sent { // it did not wait for anybody but for our ears
			v.Spans[0].from = begun
		}
		return nil
	})
	answer, err := t.ask(a, query)
	t.s.hub.send("try", func() []message {
		now := time.Now()
		v.answered(a, answer, err, begun, now)
		t.learn(v.Place, answer, begun, now)
		if t.under--; t.under == 0 {
			t.hearing.stop()
			t.hearing = nil
		}
		return t.all()
	})
}

func (t *primitivesPage) ask(a action, query url.Values) (answer told, err error) {
	address := t.s.Shop.Target + "/test/" + a.Path + "?" + query.Encode()
	r, err := http.NewRequestWithContext(t.s.lifetime, http.MethodPost, address, nil)
	if err != nil {
		return answer, fmt.Errorf("try: %w", err)
	}
	response, err := t.client.Do(r)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	err = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer)
	if err != nil || answer.Outcome == "" {
		return answer, fmt.Errorf("try: %s", response.Status)
	}
	return answer, nil
}

// heard is a step that a replica told of. An answer may have come before it.
func (v *visitor) heard(step, replica string, at time.Time) {
	v.Replica = replica
	switch {
	case step == "asked" && v.State == sent:
		v.enter(waiting, at)
	case step == "granted" && v.Action.Holds && (v.State == waiting || v.State == sent):
		v.enter(holding, at)
	case step == "released" && v.State == holding && !v.Action.Stays:
		v.enter(gone, at)
	}
}

// enter ends the span that is on, and begins the next one, but for who is gone.
func (v *visitor) enter(next state, at time.Time) {
	if n := len(v.Spans); n > 0 && v.Spans[n-1].to.IsZero() {
		v.Spans[n-1].to = at
	}
	if v.State = next; !v.over() {
		v.Spans = append(v.Spans, span{state: next, from: at})
	}
}

// answered is the end of a request. What no step told, the answer does.
func (v *visitor) answered(a action, answer told, err error, begun, now time.Time) {
	if answer.Replica != "" {
		v.Replica = answer.Replica
	}
	good := err == nil && goodOutcomes[answer.Outcome]
	switch {
	case err != nil:
		v.Said = Text{err.Error(), err.Error()}
	default:
		v.Said = outcomeText(answer)
	}
	waited := begun.Add(time.Duration(answer.WaitedMS * float64(time.Millisecond)))
	switch {
	case !good:
		v.enter(failed, now)
	case a.Stays: // has entered
		v.enter(holding, now)
	case a.Holds && (v.State == sent || v.State == waiting): // nobody told that it was granted
		v.enter(holding, waited)
		v.enter(gone, now)
	case v.State != gone:
		v.enter(gone, now)
	}
}

// learn remembers what an answer told of the place. Of two requests that were under way
// together, the later answer may tell of the earlier moment: then the latch that is
// further down is the newer one, and the counter with the higher version.
func (t *primitivesPage) learn(p spot, answer told, begun, now time.Time) {
	f := t.facts[p]
	later := begun.After(f.at)
	value := answer.Value
	if answer.After != nil {
		value = answer.After
	}
	switch {
	case answer.Left != nil:
		if later || f.Left == nil || *answer.Left < *f.Left {
			f.Left = answer.Left
		}
	case answer.Outcome == "set" || answer.Outcome == "was_set":
		f.Up = "yes"
	case answer.Outcome == "removed" || answer.Outcome == "was_not_set":
		f.Up = "no"
	case value != nil:
		if later || answer.Version > f.version {
			f.Value, f.version = value, answer.Version
		}
	default:
		return
	}
	f.at = now
	t.facts[p] = f
}

// all is everything that a page shows. It is called in the hub's turn.
func (t *primitivesPage) all() []message {
	return []message{t.s.part("try", "places", t.places())}
}

// hear is called with each step that a replica told of.
func (t *primitivesPage) hear(tag, step, replica string) {
	if !strings.HasPrefix(tag, "v-"+t.boot+"-") {
		return
	}
	t.s.hub.send("try", func() []message {
		for _, v := range t.visitors {
			if v.Tag == tag {
				v.heard(step, replica, time.Now())
			}
		}
		return nil // drawn with the next turn of the clock
	})
}
