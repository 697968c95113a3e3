package dash

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
)

type action struct {
	ID       string
	Path     string // the service's path, after /test/
	Name     api.Text
	Backends []string
	Numbers  []string // the form's numbers
	Fixed    string   // further parameters of the request, as a query
	As       string   // the action as which a holder is counted, if not ID
	Holds    bool     // the visitor holds something for some time
	Stays    bool     // the visitor holds it until another action ends that
	ByHand   bool     // locks or unlocks as an owner
}

// Only returns the backend of a primitive that has only one, or "".
func (p primitive) Only() string {
	if backends := p.Actions[0].Backends; len(backends) == 1 {
		return backends[0]
	}
	return ""
}

type primitive struct {
	ID      string
	Title   api.Text
	Note    api.Text
	Actions []action
}

func primitives() []primitive {
	both, redis, zk := []string{"redis", "zk"}, []string{"redis"}, []string{"zk"}
	times, leased := []string{"hold", "wait"}, []string{"lease", "wait"}
	return []primitive{
		{"read-write", bilingual("Read-write lock", "读写锁"), bilingual("Readers share the lock. A writer holds it alone.", "读者共享，写者独占。"), []action{
			{ID: "read", Path: "read", Name: bilingual("reader", "读者"), Backends: both, Numbers: times, Holds: true},
			{ID: "write", Path: "write", Name: bilingual("writer", "写者"), Backends: both, Numbers: times, Holds: true},
			{ID: "upgrade", Path: "read", Name: bilingual("reader that then writes", "读者再加写锁"), Backends: both, Numbers: times, Fixed: "then=write", As: "read", Holds: true},
			{ID: "write-read", Path: "write", Name: bilingual("writer that also reads", "写者再加读锁"), Backends: both, Numbers: times, Fixed: "then=read", As: "write", Holds: true},
			{ID: "downgrade", Path: "write", Name: bilingual("writer that becomes a reader", "写锁降级为读锁"), Backends: both, Numbers: times, Fixed: "then=read&downgrade=true", As: "write", Holds: true},
		}},
		{"semaphore", bilingual("Semaphore", "信号量"), bilingual("It limits the number of holders. Ten requests acquire their permits in waves.", "限制同时持有者的数量。十个请求会分批拿到许可。"), []action{
			{ID: "permit", Path: "semaphore", Name: bilingual("permit", "许可"), Backends: both, Numbers: []string{"permits", "qty", "hold", "wait"}, Holds: true},
		}},
		{"latch", bilingual("Latch", "闭锁"), bilingual("It opens when it has been counted down to 0.", "倒数到 0 就打开。"), []action{
			{ID: "latch", Path: "latch", Name: bilingual("waiter", "等待者"), Backends: redis, Numbers: []string{"count", "wait"}},
			{ID: "countdown", Path: "countdown", Name: bilingual("countdown", "倒数"), Backends: redis, Numbers: []string{"count"}},
		}},
		{"barrier", bilingual("Barrier", "屏障"), bilingual("All requests wait while the barrier exists.", "屏障存在时，所有请求都等待。"), []action{
			{ID: "barrier-set", Path: "barrier/set", Name: bilingual("set the barrier", "设置屏障"), Backends: zk},
			{ID: "barrier-wait", Path: "barrier/wait", Name: bilingual("waiter", "等待者"), Backends: zk, Numbers: []string{"wait"}},
			{ID: "barrier-remove", Path: "barrier/remove", Name: bilingual("remove the barrier", "移除屏障"), Backends: zk},
		}},
		{"double-barrier", bilingual("Double barrier", "双重屏障"), bilingual("All members enter together and leave together.", "所有成员一起进入，一起离开。"), []action{
			{ID: "enter", Path: "double-barrier/enter", Name: bilingual("enter", "进入"), Backends: zk, Numbers: []string{"members", "wait"}, Holds: true, Stays: true},
			{ID: "leave", Path: "double-barrier/leave", Name: bilingual("leave", "离开"), Backends: zk, Numbers: []string{"wait"}},
		}},
		{"counter", bilingual("Counter", "计数器"), bilingual("A number in ZooKeeper, which all replicas read and change.", "ZooKeeper 里的一个数，所有副本都可以读取和修改。"), []action{
			{ID: "increment", Path: "counter", Name: bilingual("add 1", "加 1"), Backends: zk, Numbers: []string{"wait"}, Fixed: "op=increment"},
			{ID: "decrement", Path: "counter", Name: bilingual("subtract 1", "减 1"), Backends: zk, Numbers: []string{"wait"}, Fixed: "op=decrement"},
			{ID: "add", Path: "counter", Name: bilingual("add the value", "加上数值"), Backends: zk, Numbers: []string{"value", "wait"}, Fixed: "op=add"},
			{ID: "subtract", Path: "counter", Name: bilingual("subtract the value", "减去数值"), Backends: zk, Numbers: []string{"value", "wait"}, Fixed: "op=subtract"},
			{ID: "get", Path: "counter", Name: bilingual("read it", "读取"), Backends: zk, Fixed: "op=get"},
			{ID: "try-set", Path: "counter", Name: bilingual("try to set the value", "尝试设置数值"), Backends: zk, Numbers: []string{"value"}, Fixed: "op=try-set"},
			{ID: "force-set", Path: "counter", Name: bilingual("set the value", "强制设置数值"), Backends: zk, Numbers: []string{"value"}, Fixed: "op=force-set"},
			{ID: "compare-and-set", Path: "counter", Name: bilingual("set the value if it is as expected", "等于期望值才设置"), Backends: zk, Numbers: []string{"value", "expect"}, Fixed: "op=compare-and-set"},
			{ID: "compare-version", Path: "counter", Name: bilingual("set the value if the version is the same", "版本相同才设置"), Backends: zk, Numbers: []string{"value", "version"}, Fixed: "op=compare-version"},
		}},
		{"lock", bilingual("Lock by hand", "手动加锁"), bilingual("An owner locks and unlocks with two requests. With a lease, the lock ends by itself. With a lease of 0, a watchdog renews it until the unlock.", "同一个持有者用两个请求加锁、解锁。指定租期时到期自动解锁；租期为 0 时由看门狗续期，直到解锁。"), []action{
			{ID: "lock", Path: "lock", Name: bilingual("lock with the strategy", "按策略加锁"), Backends: both, Numbers: leased, Holds: true, Stays: true, ByHand: true},
			{ID: "unlock", Path: "unlock", Name: bilingual("unlock with the strategy", "按策略解锁"), Backends: both, ByHand: true},
			{ID: "read-lock", Path: "read/lock", Name: bilingual("lock to read", "加读锁"), Backends: both, Numbers: leased, As: "lock", Holds: true, Stays: true, ByHand: true},
			{ID: "read-unlock", Path: "read/unlock", Name: bilingual("unlock after reading", "释放读锁"), Backends: both, ByHand: true},
			{ID: "write-lock", Path: "write/lock", Name: bilingual("lock to write", "加写锁"), Backends: both, Numbers: leased, As: "lock", Holds: true, Stays: true, ByHand: true},
			{ID: "write-unlock", Path: "write/unlock", Name: bilingual("unlock after writing", "释放写锁"), Backends: both, ByHand: true},
			{ID: "acquire", Path: "semaphore/acquire", Name: bilingual("acquire one of 3 permits", "获取许可（共 3 个）"), Backends: both, Numbers: leased, As: "lock", Holds: true, Stays: true, ByHand: true},
			{ID: "release", Path: "semaphore/release", Name: bilingual("release a permit", "释放许可"), Backends: both, ByHand: true},
		}},
	}
}

// limits returns the lowest and the highest value of each number of the form. Times are in ms.
// A lease of 0 is left out.
func limits() map[string][2]int {
	const most = 1_000_000_000
	return map[string][2]int{
		"hold": {0, 60_000}, "wait": {0, 60_000}, "lease": {0, 60_000}, "permits": {1, 1000}, "qty": {1, 1000}, "count": {1, 1000}, "members": {1, 1000},
		"value": {-most, most}, "expect": {-most, most}, "version": {0, most},
	}
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// order is the effect of one click: several visitors (simulated clients) request the same action.
type order struct {
	Of      primitive
	Action  action
	At      target
	Permits int
	Qty     int
	Owner   string // of a lock by hand
	many    int
	query   url.Values
}

// orderOf reads the form. Its field send has an action and a number of requests, such as read:3.
func orderOf(req *http.Request) (o order, err error) {
	id, many, _ := strings.Cut(req.Form.Get("send"), ":")
	for _, p := range primitives() {
		for _, a := range p.Actions {
			if a.ID == id {
				o.Of, o.Action = p, a
			}
		}
	}
	if o.Action.ID == "" {
		return o, reject(http.StatusNotFound, "Action %q does not exist.", "没有操作 %q。", id)
	}
	if o.many, err = strconv.Atoi(many); err != nil || o.many < 1 || o.many > 10 {
		return o, badRequest("Send 1 to 10 requests at a time.", "一次发送 1 到 10 个请求。")
	}
	name, backend := req.Form.Get("name"), req.Form.Get("backend")
	if !validName.MatchString(name) {
		return o, badRequest("The name must have 1 to 40 letters, digits, _ or -.", "名称须为 1 到 40 个字母、数字、_ 或 -。")
	}
	if backend != "redis" && backend != "zk" {
		return o, badRequest("The backend must be redis or zk.", "后端须为 redis 或 zk。")
	}
	if !slices.Contains(o.Action.Backends, backend) {
		return o, badRequest("%[1]s works only with the backend %[3]s: choose it above.", "%[2]s只有后端 %[3]s：请在上面选择它。", o.Of.Title.EN, o.Of.Title.ZH, o.Action.Backends[0])
	}
	o.At = target{o.Of.ID, backend, name}
	if o.query, err = url.ParseQuery(o.Action.Fixed); err != nil {
		return o, err
	}
	o.query.Set("name", name)
	if err := o.readTarget(req, backend); err != nil {
		return o, err
	}
	err = o.readNumbers(req)
	return o, err
}

// readTarget reads the backend of a primitive, and the owner and perhaps the strategy of a lock by hand.
func (o *order) readTarget(req *http.Request, backend string) error {
	route, _, primitive := strings.Cut(o.Action.Path, "/")
	strategy := req.Form.Get("strategy")
	if o.Action.ByHand {
		o.Owner = req.Form.Get("owner")
		o.query.Set("owner", o.Owner)
		if !validName.MatchString(o.Owner) || !validName.MatchString(strategy) {
			return badRequest("The owner and the strategy must have 1 to 40 letters, digits, _ or -.", "持有者和策略须为 1 到 40 个字母、数字、_ 或 -。")
		}
		o.At.Backend = backend + " " + route
	}
	if o.Action.ByHand && !primitive {
		o.At.Backend = strategy
		o.query.Set("strategy", strategy)
		return nil
	}
	o.query.Set("backend", backend)
	return nil
}

func (o *order) readNumbers(req *http.Request) error {
	for _, number := range o.Action.Numbers {
		n, err := strconv.Atoi(req.Form.Get(number))
		if may := limits()[number]; err != nil || n < may[0] || n > may[1] {
			return badRequest("%s must be %d to %d.", "%s 须在 %d 到 %d 之间。", number, may[0], may[1])
		}
		unit := ""
		switch number {
		case "hold", "wait", "lease":
			unit = "ms"
		case "permits":
			o.Permits = n
		case "qty":
			o.Qty = n
		}
		if number != "lease" || n > 0 {
			o.query.Set(number, strconv.Itoa(n)+unit)
		}
	}
	return nil
}
