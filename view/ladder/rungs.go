package ladder

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/lab/history"
	"oversell/lab/stepper"
)

// merged is the time within which the request for a lock and its grant are one rung.
const merged = 100 * time.Millisecond

// moment is a rung with its time.
type moment struct {
	Rung
	at time.Duration
}

// scene places the moments of a recording in columns.
type scene struct {
	Recorded
	columns     []Column
	lock, stock int // their columns, or -1
	moments     []moment
}

// Ladder returns the picture of the recording.
func (t Recorded) Ladder() Ladder {
	s := scene{Recorded: t, lock: -1, stock: -1}
	s.setColumns()
	s.addLapses()
	for i, task := range t.tasks {
		s.addSteps(i, task)
		s.addAnswer(i, task)
	}
	s.addFaults()
	s.addOverlap()
	s.addBalance()
	slices.SortStableFunc(s.moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	s.moments = s.shortened()
	l := Ladder{Title: t.title(), Unit: t.say("s", "秒"), Columns: s.columns}
	l.Bands = s.bands()
	for i, m := range s.moments {
		if m.Kind != Gap && (i == 0 || t.since(m.at) != t.since(s.moments[i-1].at) || s.moments[i-1].Kind == Gap) {
			m.At = t.since(m.at)
		}
		l.Rungs = append(l.Rungs, m.Rung)
	}
	return l
}

func (s *scene) setColumns() {
	locked, sold := false, false
	for _, task := range s.tasks {
		s.columns = append(s.columns, Column{Name: task.name, Note: cmp.Or(task.replica, s.word("no replica")), Client: true})
		locked = locked || len(task.holds)+len(task.waits) > 0
		sold = sold || task.op != nil && task.op.Qty > 0 || task.took("read") || task.took("written")
	}
	if locked || len(s.columns) == 0 && len(s.spans) > 0 { // a fault that no request was there to see has its place beside the lock
		s.lock = len(s.columns)
		s.columns = append(s.columns, Column{Name: s.word("lock")})
	}
	if sold {
		s.stock = len(s.columns)
		c := Column{Name: s.word("stock")}
		if s.initial > 0 {
			c.Note = strconv.Itoa(s.initial)
		}
		s.columns = append(s.columns, c)
	}
}

func (s *scene) add(at time.Duration, r Rung) { s.moments = append(s.moments, moment{r, at}) }

// step adds a rung of a client, with a message to or from a server if it has a column.
func (s *scene) step(at time.Duration, client, from, to int, words string) *Rung {
	if from < 0 || to < 0 {
		from, to = client, client
	}
	s.add(at, Rung{Column: client, From: from, To: to, Words: words})
	return &s.moments[len(s.moments)-1].Rung
}

func (s *scene) addSteps(client int, task *task) {
	fence, began := int64(0), len(s.moments)
	for i, e := range task.events {
		switch e.Step {
		case "asked":
			if slices.ContainsFunc(task.waits, func(w stretch) bool { return w.from == e.At }) && s.apart(task, i) {
				s.step(e.At, client, client, s.lock, s.say("asks for the lock", "请求加锁"))
			}
		case "queued":
			if s.apart(task, i) {
				s.step(e.At, client, client, client, s.done(e))
			}
		case "granted":
			words := s.say("gets the lock", "拿到锁")
			if f := fenceOf(e); f > 0 && f != fence {
				fence = f
				words += s.say(", fence %d", "，栅栏号 %d", f)
			}
			s.step(e.At, client, s.lock, client, words)
		case "read":
			s.step(e.At, client, s.stock, client, s.reads(task, e))
		case "writing":
			if len(s.moments) == began { // otherwise, the step before says enough
				s.step(e.At, client, client, client, s.done(e))
			}
		case "written":
			s.write(client, task, e)
		case "released":
			if i == len(task.events)-1 {
				s.addRefusal(client, task, e)
			}
			s.step(e.At, client, client, s.lock, s.say("releases the lock", "释放锁"))
		default:
			s.step(e.At, client, client, client, s.done(e))
		}
	}
}

func (s *scene) done(e history.Event) string { return stepper.Done(e.Step).In(string(s.lang)) }

// apart reports whether the step i needs a rung of its own: something happened before the next step.
func (s *scene) apart(of *task, i int) bool {
	e := of.events[i]
	if i+1 == len(of.events) {
		return true
	}
	next := of.events[i+1].At
	if next-e.At > merged {
		return true
	}
	for _, task := range s.tasks {
		for _, other := range task.events {
			if task != of && e.At < other.At && other.At < next {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.spans, func(f history.Span) bool { return e.At < f.From && f.From < next })
}

// reads says which number a client read, if it is known.
func (s *scene) reads(task *task, e history.Event) string {
	if s.initial == 0 || s.left > 0 {
		return s.say("reads the stock", "读取库存")
	}
	n, again := s.initial-piecesAt(s.taken, e.At), slices.ContainsFunc(task.events, func(o history.Event) bool { return o.Step == "read" && o.At > e.At })
	if op := task.op; !again && op != nil && op.HasRemaining && op.Outcome == history.OK {
		n = op.Remaining + op.Qty
	}
	return s.say("reads %d", "读取 %d", n)
}

func (s *scene) write(client int, task *task, e history.Event) {
	if s.initial == 0 || s.left > 0 || task.op == nil || !task.op.HasRemaining {
		s.step(e.At, client, client, s.stock, s.say("writes", "写入"))
		return
	}
	n := strconv.Itoa(task.op.Remaining)
	words := s.say("writes %s", "写入 %s", n)
	if !task.took("read") {
		words = s.say("subtracts 1", "减 1")
	}
	r := s.step(e.At, client, client, s.stock, words)
	if r.Stock, r.Lost = n, s.overwrites(task, e.At); r.Lost {
		r.Words = s.say("writes %s over %s ✗", "在 %[2]s 上又写入 %[1]s ✗", n, strconv.Itoa(s.initial-piecesAt(s.taken, e.At-1)))
	}
}

// addRefusal adds the write that the stock refused, or that the client did not send. The client reports no such
// step: its answer says it.
func (s *scene) addRefusal(client int, task *task, e history.Event) {
	switch {
	case task.op == nil:
	case task.op.Reason == "fenced":
		s.step(e.At-1, client, client, s.stock, s.say("writes: ✗ refused, fence %s is old", "写入：✗ 被拒绝，栅栏号 %s 已旧", task.fences())).Kind = Refused
	case task.op.Reason == "lost":
		s.step(e.At-1, client, client, client, s.say("finds its lock lost, writes nothing", "发现锁已丢失，不写入"))
	}
}

func (s *scene) addAnswer(client int, task *task) {
	if task.op == nil {
		return
	}
	if len(task.events) == 0 {
		s.step(task.op.Call, client, client, client, s.say("sends its request", "发出请求"))
	}
	r := Rung{Kind: Answer, Column: client, From: client, To: client, Words: s.answer(task)}
	if len(task.events) == 0 && task.op.HasRemaining && s.stock >= 0 {
		r.From, r.Stock = s.stock, strconv.Itoa(task.op.Remaining)
	}
	at := task.op.Return
	const sameMoment = 5 * time.Millisecond // by which the clocks of a replica and of the lab may differ
	if last := task.lastStep(); last-at < sameMoment {
		at = max(at, last)
	}
	s.add(at, r)
}

// lapseRung returns the time of the rung of a lapse: before the next grant, which may have the same time.
func lapseRung(h stretch) time.Duration { return h.lapse - 1 }

func (s *scene) addLapses() {
	for i, task := range s.tasks {
		for _, h := range task.holds {
			if h.lapses() {
				words := s.word("lease ends")
				if h.lost {
					words = s.word("lock lost")
				}
				s.add(lapseRung(h), Rung{Kind: Fault, Column: i, From: i, To: i, Words: words})
			}
		}
	}
}

// affected returns the columns of the server that a fault affects.
func (s *scene) affected(who string) (columns []int) {
	for i, c := range s.columns {
		if c.Client && slices.Contains(strings.Split(who, ", "), c.Note) {
			columns = append(columns, i)
		}
	}
	return columns
}

func (s *scene) addFaults() {
	for i, f := range s.spans {
		columns := s.affected(f.Who)
		r := Rung{Kind: Fault, Words: s.fault(f.What)}
		if len(columns) == 0 {
			r.Column, r.Words = max(0, s.serverOf(f.Who)), f.Who+": "+r.Words
		} else {
			r.Column = columns[0]
		}
		r.From, r.To = r.Column, r.Column
		if i == 0 {
			r.Anchor = fault
		}
		s.add(f.From, r)
		if end := s.ended(f.What); end != "" && len(columns) > 0 && f.To < s.lastMoment() {
			r.Words, r.Anchor = end, ""
			s.add(f.To, r)
		}
	}
}
