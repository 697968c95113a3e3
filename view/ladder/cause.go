package ladder

import (
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// Cause explains the run in one or two sentences: why two requests held the lock, or why an update
// was lost, or what prevented it. It is empty if the recording does not show a cause.
func (t Recorded) Cause() string {
	harmful := slices.IndexFunc(t.overlaps, func(o overlap) bool { return o.acted })
	switch {
	case harmful >= 0:
		return t.sentences(t.lapseCause(t.overlaps[harmful]), t.lateWrite(t.overlaps[harmful]), t.lostUpdate())
	case t.lostUpdate() != "":
		return t.sentences(t.unlockedCause(), t.lostUpdate())
	case len(t.overlaps) > 0:
		return t.sentences(t.lapseCause(t.overlaps[0]), t.refused(t.overlaps[0]))
	default:
		return t.handover()
	}
}

// Shows reports whether the recording shows a violation, so that Cause explains it.
func (t Recorded) Shows() bool { return len(t.overlaps) > 0 || t.lostUpdate() != "" }

func (t Recorded) sentences(all ...string) string {
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	if t.lang == "zh" {
		return strings.Join(all, "")
	}
	return strings.Join(all, " ")
}

// lapseCause says why the second request acquired the lock while the first believed that it held it.
func (t Recorded) lapseCause(o overlap) string {
	a, b := o.first.name, o.second.name
	i := slices.IndexFunc(o.first.holds, func(h stretch) bool { return h.from <= o.from && o.from < h.to })
	if i < 0 {
		return t.unexplained(o, o.from)
	}
	h := o.first.holds[i]
	if !h.lapses() || h.lost {
		return t.lossCause(o, h)
	}
	why := t.say("before its work was finished", "工作还没做完")
	if s, there := t.silencing(o.first, h); there {
		if why = t.say("while its process was frozen", "期间进程停顿"); s.Kind() == history.CutOff {
			why = t.say("while it was cut off from the lock's server", "期间与锁服务器的连接被切断")
		}
	}
	return t.say("The lease of %[1]s ended at %[3]s s, %[5]s, and %[2]s acquired the lock at %[4]s s.",
		"%[1]s 的租期在 %[3]s 秒结束（%[5]s），%[2]s 在 %[4]s 秒拿到锁。", a, b, t.since(h.lapse), t.since(o.from), why)
}

// lossCause says why the second request acquired the lock, if the lease of the first had not ended. It names only what
// was recorded.
func (t Recorded) lossCause(o overlap, h stretch) string {
	a, b, at := o.first.name, o.second.name, t.since(o.from)
	for _, s := range t.spans {
		switch {
		case s.From > o.from:
		case s.Kind() == history.ClockJumped:
			return t.say("After a jump of the clock of %[3]s by %[4]s, %[2]s acquired the lock of %[1]s at %[5]s s.", "%[3]s 的时钟跳了 %[4]s 之后，%[2]s 在 %[5]s 秒拿到了 %[1]s 的锁。", a, b, s.Who, s.Jump(), at)
		case !s.OnReplica():
			return t.say("The lock of %[1]s was lost on its server, and %[2]s acquired it at %[3]s s.", "%[1]s 的锁在服务器上丢失，%[2]s 在 %[3]s 秒拿到锁。", a, b, at)
		}
	}
	if s, there := t.silencing(o.first, h); there && s.From <= o.from && !h.lapses() {
		return t.say("The server ended the session of %[1]s (%[4]s), and %[2]s acquired the lock at %[3]s s.", "服务器结束了 %[1]s 的会话（%[4]s），%[2]s 在 %[3]s 秒拿到锁。", a, b, at, t.fault(s.What))
	}
	return t.unexplained(o, h.from)
}

// unexplained says what is sure: the second request acquired the lock, perhaps after another request had released it.
func (t Recorded) unexplained(o overlap, since time.Duration) string {
	a, b, at := o.first.name, o.second.name, t.since(o.from)
	for _, other := range t.tasks {
		released := func(e history.Event) bool { return e.Step == "released" && since < e.At && e.At <= o.from }
		if other != o.first && other != o.second && slices.ContainsFunc(other.events, released) {
			return t.say("After %[4]s had released a lock, %[2]s acquired it at %[3]s s, although %[1]s had not released it.", "%[4]s 释放锁之后，%[2]s 在 %[3]s 秒拿到锁，而 %[1]s 还没有释放它。", a, b, at, other.name)
		}
	}
	return t.say("%[2]s acquired the lock at %[3]s s although %[1]s had not released it.", "%[3]s 秒时 %[1]s 还没有释放锁，%[2]s 就拿到了锁。", a, b, at)
}

func (t Recorded) lateWrite(o overlap) string {
	at := o.from
	for _, e := range o.first.events {
		if e.Step == "writing" || e.Step == "written" {
			at = max(at, e.At)
		}
	}
	if !slices.ContainsFunc(o.first.holds, stretch.lapses) {
		return t.say("%s wrote after that, at %s s.", "此后 %s 在 %s 秒写入。", o.first.name, t.since(at))
	}
	return t.say("%s still believed that it held the lock, and wrote at %s s.", "%s 仍以为自己持锁，在 %s 秒写入。", o.first.name, t.since(at))
}

// lostUpdate compares the pieces sold with the pieces taken from the stock at the end.
func (t Recorded) lostUpdate() string {
	if len(t.sales) == 0 || len(t.taken) == 0 {
		return ""
	}
	sold, taken := t.sales[len(t.sales)-1].pieces, t.taken[len(t.taken)-1].pieces
	if sold <= taken {
		return ""
	}
	return Difference(sold, taken).In(string(t.lang))
}

// Difference compares the pieces sold with those taken from the stock. It is empty if there are none.
func Difference(sold, taken int) api.Text {
	switch lost := sold - taken; {
	case sold == 0 && taken == 0:
		return api.Text{}
	case lost > 0:
		return api.Textf("Lost update: %d sold, %d taken from stock.", "丢失更新：卖出 %d 件，库存减少 %d。", sold, taken)
	case lost < 0:
		return api.Textf("Lost sale: %d sold, %d taken from stock. No answer confirmed the other %d.",
			"丢失销售：卖出 %d 件，库存减少 %d。另外 %d 件没有得到应答。", sold, taken, -lost)
	default:
		return api.Textf("%d sold, %d taken from stock: no update was lost.", "卖出 %d 件，库存减少 %d：没有丢失更新。", sold, taken)
	}
}

// unlockedCause names two requests that read the stock before the other had written it.
func (t Recorded) unlockedCause() string {
	for i, a := range t.tasks {
		for _, b := range t.tasks[i+1:] {
			if a.took("read", "written") && b.took("read", "written") && a.first("read") < b.first("written") && b.first("read") < a.first("written") {
				later, earlier := a, b
				if a.first("written") < b.first("written") {
					later, earlier = b, a
				}
				return t.say("%[1]s and %[2]s both read the stock before the other had written it, so the write of %[3]s overwrote that of %[4]s.",
					"%[1]s 和 %[2]s 都在对方写入之前读取了库存，所以 %[3]s 的写入覆盖了 %[4]s 的写入。", a.name, b.name, later.name, earlier.name)
			}
		}
	}
	return ""
}

// refused says why two holders did no harm.
func (t Recorded) refused(o overlap) string {
	reason := ""
	if o.first.op != nil {
		reason = o.first.op.Reason
	}
	switch reason {
	case "fenced":
		return t.say("The late write of %[1]s was refused: its fencing token %[3]s is older than %[4]s, the token of %[2]s.",
			"%[1]s 迟到的写入被拒绝：它的栅栏号 %[3]s 比 %[2]s 的 %[4]s 旧。", o.first.name, o.second.name, o.first.fences(), o.second.fences())
	case "lost":
		return t.say("%s noticed it, and did not write.", "%s 发现后没有写入。", o.first.name)
	}
	return ""
}

// handover says how the lock went from the first holder to the next request, or that it did not.
func (t Recorded) handover() string {
	i := slices.IndexFunc(t.tasks, func(a *task) bool { return len(a.holds) > 0 })
	if i < 0 {
		return ""
	}
	a := t.tasks[i]
	for _, b := range t.tasks[i+1:] {
		switch h := a.holds[len(a.holds)-1]; {
		case len(b.holds) > 0 && !h.ragged && h.to <= b.holds[0].from:
			return t.say("%s acquired the lock after %s had released it.", "%[2]s 释放锁之后，%[1]s 才拿到锁。", b.name, a.name)
		case len(b.holds) > 0 && h.ragged:
			return t.say("%[1]s died while it held the lock, and %[2]s acquired the lock %[3]s s later.", "%[1]s 持锁时被杀死，%[3]s 秒后 %[2]s 拿到锁。",
				a.name, b.name, seconds(b.holds[0].from-h.to))
		case h.ragged && b.op != nil && b.op.Reason == history.NotAcquired:
			return t.say("%[1]s died while it held the lock, and nothing released it: %[2]s waited %[3]s s in vain.", "%[1]s 持锁时被杀死，锁没有被释放：%[2]s 白等了 %[3]s 秒。",
				a.name, b.name, seconds(b.op.Return-b.op.Call))
		}
	}
	return ""
}

func (t *task) took(steps ...api.Step) bool {
	return !slices.ContainsFunc(steps, func(step api.Step) bool { return t.first(step) < 0 })
}

// first returns the time of the first such step, or -1.
func (t *task) first(step api.Step) time.Duration {
	if i := slices.IndexFunc(t.events, func(e history.Event) bool { return e.Step == step }); i >= 0 {
		return t.events[i].At
	}
	return -1
}
