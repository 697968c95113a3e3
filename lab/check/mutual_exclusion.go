package check

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"oversell/lab/history"
)

// Hold is the time from the grant of a key to its release. A hold without a release ends
// when its replica is killed, or at the end of the recording.
type Hold struct {
	Key, Owner, Replica string
	From, To            time.Duration
}

// Overlap is a pair of holds of one key at the same time.
type Overlap struct {
	First, Second Hold // First was granted first
	From, To      time.Duration
	Event         int // index of Second's grant in Events
	// Acted is true if First wrote, or was about to, after the grant to Second. Act is the
	// index of that step, or -1. Without it the overlap did no harm: First may have noticed
	// its loss in time, or its release was reported late.
	Acted bool
	Act   int
}

// MutualExclusion is the second invariant (I2): no two holds of a key overlap.
type MutualExclusion struct {
	Holds    int // number of holds; without any, the verdict proves nothing
	Acted    int // pairs whose first holder went on writing
	Idle     int // pairs whose first holder did no more
	Overlaps []Overlap
	Event    int // the grant that made the first harmful pair, or -1
	Verdict  Verdict
	Why      string
}

// mostIdle limits the idle pairs that are kept: n holds that never end make n*n/2 pairs.
const mostIdle = 100

// Exclusion checks mutual exclusion, for a mutex in each replica as for a lock across them:
// all replicas share one stock. Overlaps are in the order of their second grant: every
// harmful pair, and the first hundred idle ones.
//
// A strategy must report released on every path, also after a rollback. Otherwise its holds
// seem to last for ever.
func Exclusion(rec history.Recording) MutualExclusion {
	all := holdsOf(rec)
	c := MutualExclusion{Holds: len(all), Event: none, Verdict: Holds}
	live := map[string][]*hold{} // by key: granted before, and perhaps not over yet
	for _, second := range all {
		others := slices.DeleteFunc(live[second.Key], func(h *hold) bool { return h.end <= second.granted })
		for _, first := range others {
			c.add(first.overlap(second))
		}
		live[second.Key] = append(others, second)
	}
	c.Why = c.why()
	return c
}

func (c *MutualExclusion) add(o Overlap) {
	switch {
	case !o.Acted:
		c.Idle++
		if c.Idle > mostIdle {
			return
		}
	case c.Acted == 0:
		c.Event, c.Verdict = o.Event, Broken
		fallthrough
	default:
		c.Acted++
	}
	c.Overlaps = append(c.Overlaps, o)
}

func (c *MutualExclusion) why() string {
	if c.Verdict == Broken {
		i := slices.IndexFunc(c.Overlaps, func(o Overlap) bool { return o.Acted })
		o := c.Overlaps[i]
		return fmt.Sprintf("%s on %s was granted %s at %v although %s on %s had held it since %v, and then wrote",
			o.Second.Owner, o.Second.Replica, o.Second.Key, brief(o.Second.From), o.First.Owner, o.First.Replica, brief(o.First.From))
	}
	switch {
	case c.Holds == 0:
		return "there was no grant to judge"
	case c.Idle > 0:
		return fmt.Sprintf("of %d holds %d pairs overlapped, but no first holder wrote after the second grant", c.Holds, c.Idle)
	default:
		return fmt.Sprintf("none of %d holds overlapped with another", c.Holds)
	}
}

// hold is a Hold with its indices in the recording. Indices decide what came first, not
// times: two steps may have the same time.
type hold struct {
	Hold
	granted, end int   // from its grant's index to before that of its end
	acts         []int // the holder's writing and written
	entered      int   // entries not yet left; more than one when nested
}

// task identifies a holder. The service gives every request a unique owner.
type task struct{ key, owner, replica string }

// holdsOf returns all holds in the order of their grants. Nested entries of one owner
// are one hold, from the first grant to the last release.
func holdsOf(rec history.Recording) []*hold {
	var all []*hold
	held := map[task]*hold{}
	for i, e := range rec.Events {
		id := task{e.Key, e.Owner, e.Replica}
		h := held[id]
		if h == nil && e.Step == granted {
			h = &hold{Hold: Hold{Key: e.Key, Owner: e.Owner, Replica: e.Replica, From: e.At}, granted: i, end: none}
			held[id] = h
			all = append(all, h)
		}
		if h == nil {
			continue
		}
		switch e.Step {
		case granted:
			h.entered++
		case writing, written:
			h.acts = append(h.acts, i)
		case released:
			h.To, h.end = e.At, i
			h.entered--
			if h.entered == 0 {
				delete(held, id)
			}
		}
	}
	for _, h := range all {
		if h.end == none {
			h.endUnreleased(rec)
		}
	}
	return all
}

// endUnreleased ends a hold that was never released.
func (h *hold) endUnreleased(rec history.Recording) {
	h.To, h.end = rec.Events[len(rec.Events)-1].At, len(rec.Events)
	for _, s := range rec.Spans {
		if s.Who == h.Replica && strings.HasPrefix(s.What, "killed") && s.From >= h.From && s.From < h.To {
			h.To = s.From
			h.end = sort.Search(len(rec.Events), func(i int) bool { return rec.Events[i].At >= s.From })
		}
	}
}

// overlap says what happened when second was granted during h.
func (h *hold) overlap(second *hold) Overlap {
	o := Overlap{
		First: h.Hold, Second: second.Hold,
		From: second.From, To: min(h.To, second.To),
		Event: second.granted, Act: none,
	}
	if i := slices.IndexFunc(h.acts, func(act int) bool { return act > second.granted }); i >= 0 {
		o.Acted, o.Act = true, h.acts[i]
	}
	return o
}
