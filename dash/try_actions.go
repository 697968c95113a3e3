package dash

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// action is something that a visitor does with a primitive.
type action struct {
	ID       string
	Path     string // of the service
	Name     Text   // of who does it
	Backends []string
	Numbers  []string // of the form that it takes, besides the name
	More     url.Values
	// Holds: it has something for a while. Stays: it has it until another action ends it.
	Holds, Stays bool
}

// primitive is a family of actions.
type primitive struct {
	ID      string
	Title   Text
	Note    Text
	Actions []action
}

// primitives are all that can be tried, in the tutorial's order.
func primitives() []primitive {
	both, redis, zk := []string{"redis", "zk"}, []string{"redis"}, []string{"zk"}
	return []primitive{
		{"rw", Text{"Read-write lock", "读写锁"}, Text{"Readers share, a writer is alone.", "读者共享，写者独占。"}, []action{
			{ID: "read", Path: "read", Name: Text{"reader", "读者"}, Backends: both, Numbers: []string{"hold", "wait"}, Holds: true},
			{ID: "write", Path: "write", Name: Text{"writer", "写者"}, Backends: both, Numbers: []string{"hold", "wait"}, Holds: true},
		}},
		{"semaphore", Text{"Semaphore", "信号量"}, Text{"So many at once: ten come out in waves.", "同时只容这么多：十个分批通过。"}, []action{
			{ID: "permit", Path: "semaphore", Name: Text{"permit", "许可"}, Backends: both, Numbers: []string{"permits", "hold", "wait"}, Holds: true},
		}},
		{"latch", Text{"Latch", "闭锁"}, Text{"Opens when it was counted down to 0.", "倒数到 0 就打开。"}, []action{
			{ID: "latch", Path: "latch", Name: Text{"who waits", "等待者"}, Backends: redis, Numbers: []string{"count", "wait"}},
			{ID: "countdown", Path: "countdown", Name: Text{"countdown", "倒数"}, Backends: redis, Numbers: []string{"count"}},
		}},
		{"barrier", Text{"Barrier", "屏障"}, Text{"Everybody waits while it is up.", "屏障在时，人人等待。"}, []action{
			{ID: "barrier-set", Path: "barrier/set", Name: Text{"put it up", "设置"}, Backends: zk},
			{ID: "barrier-wait", Path: "barrier/wait", Name: Text{"who waits", "等待者"}, Backends: zk, Numbers: []string{"wait"}},
			{ID: "barrier-remove", Path: "barrier/remove", Name: Text{"take it away", "撤去"}, Backends: zk},
		}},
		{"double", Text{"Double barrier", "双重屏障"}, Text{"Members begin together and end together.", "成员一起开始，一起结束。"}, []action{
			{ID: "enter", Path: "double-barrier/enter", Name: Text{"enters", "进入"}, Backends: zk, Numbers: []string{"members", "wait"}, Holds: true, Stays: true},
			{ID: "leave", Path: "double-barrier/leave", Name: Text{"leaves", "离开"}, Backends: zk, Numbers: []string{"wait"}},
		}},
		{"counter", Text{"Counter", "计数器"}, Text{"One number for all replicas.", "所有副本共用一个数。"}, []action{
			{ID: "increment", Path: "counter", Name: Text{"adds 1", "加 1"}, Backends: zk, Numbers: []string{"wait"}, More: url.Values{"op": {"increment"}}},
			{ID: "get", Path: "counter", Name: Text{"reads it", "读取"}, Backends: zk, More: url.Values{"op": {"get"}}},
		}},
	}
}

// limits of the form's numbers; hold and wait are in ms.
func limits() map[string][2]int {
	return map[string][2]int{"hold": {0, 60_000}, "wait": {0, 60_000}, "permits": {1, 1000}, "count": {1, 1000}, "members": {1, 1000}}
}

var fitName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// sending is what a button asks for: so many visitors that do the same.
type sending struct {
	of      primitive
	action  action
	many    int
	backend string
	name    string
	permits int
	query   url.Values
}

// sendingOf reads the form: send is an action and how many, such as read:3.
func sendingOf(req request) (sending, error) {
	id, many, _ := strings.Cut(req.Form.Get("send"), ":")
	var s sending
	for _, p := range primitives() {
		for _, a := range p.Actions {
			if a.ID == id {
				s.of, s.action = p, a
			}
		}
	}
	if s.action.ID == "" {
		return s, refusal{http.StatusNotFound, Text{"There is no such primitive.", "没有这个原语。"}}
	}
	var err error
	if s.many, err = strconv.Atoi(many); err != nil || s.many < 1 || s.many > 10 {
		return s, bad("One to ten at a time.", "一次一到十个。")
	}
	if s.name = req.Form.Get("name"); !fitName.MatchString(s.name) {
		return s, bad("The name has 1 to 40 letters, digits, _ or -.", "名称须为 1 到 40 个字母、数字、_ 或 -。")
	}
	if s.backend = req.Form.Get("backend"); s.backend != "redis" && s.backend != "zk" {
		return s, bad("The backend is redis or zk.", "后端为 redis 或 zk。")
	}
	if !slices.Contains(s.action.Backends, s.backend) {
		s.backend = s.action.Backends[0] // the page says which it has
	}
	s.query = url.Values{"backend": {s.backend}, "name": {s.name}}
	for key, values := range s.action.More {
		s.query[key] = values
	}
	for _, number := range s.action.Numbers {
		n, err := strconv.Atoi(req.Form.Get(number))
		if may := limits()[number]; err != nil || n < may[0] || n > may[1] {
			return s, bad(number+" must be "+strconv.Itoa(may[0])+" to "+strconv.Itoa(may[1])+".", number+" 须在 "+strconv.Itoa(may[0])+" 到 "+strconv.Itoa(may[1])+" 之间。")
		}
		text := strconv.Itoa(n)
		if number == "hold" || number == "wait" {
			text += "ms"
		}
		s.query.Set(number, text)
		if number == "permits" {
			s.permits = n
		}
	}
	return s, nil
}
