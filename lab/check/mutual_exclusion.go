package check

import (
	"slices"
	"sort"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// Hold lasts from a grant to the release, the kill of the holder's replica, or the recording's end.
type Hold struct {
	Key, Owner, Replica string
	From, To            time.Duration

	// Indices in Events give the order of steps, because two steps may have the same time.
	granted, end int
	acts         []int // the holder's steps writing and written
	entered      int   // entries of the lock that have not ended; more than 1 if nested
}

// Overlap is a pair of holds of one key at the same time.
type Overlap struct {
	First, Second *Hold // First was granted first
	From, To      time.Duration
	// Acted means that First wrote, or was about to write, after the grant to Second. Otherwise First
	// may have noticed the loss of its lock, or its release was reported late.
	Acted bool
}

// MutualExclusion is the result of invariant I2: no two holds of a key overlap with harm (Acted).
type MutualExclusion struct {
	Holds    int // number of holds; 0 means that the verdict proves nothing
	Idle     int // pairs whose first holder did not write after the second grant
	Overlaps []Overlap
	Verdict  api.Verdict
	Why      api.Text
}

// mostIdle limits the harmless pairs in Overlaps, because n holds that never end make n*n/2 pairs.
const mostIdle = 100

// Exclusion checks all replicas together, because they share one stock. Overlaps has every harmful
// pair and the first hundred harmless (idle) pairs, in the order of the grants to Second.
//
// A strategy must report released on every path, also after a rollback. A hold whose release is not
// reported seems never to end.
func Exclusion(rec history.Recording) MutualExclusion {
	all := holdsOf(rec)
	c := MutualExclusion{Holds: len(all), Verdict: api.Holds}
	live := map[string][]*Hold{} // by key: earlier holds that may not have ended
	for _, second := range all {
		others := slices.DeleteFunc(live[second.Key], func(h *Hold) bool { return h.end <= second.granted })
		for _, first := range others {
			c.add(Overlap{
				First: first, Second: second, From: second.From, To: min(first.To, second.To),
				Acted: slices.ContainsFunc(first.acts, func(act int) bool { return act > second.granted }),
			})
		}
		live[second.Key] = append(others, second)
	}
	switch {
	case c.Verdict == api.Broken:
	case c.Holds == 0:
		c.Why = api.Text{EN: "There was no grant to judge.", ZH: "没有可供判定的加锁。"}
	case c.Idle > 0:
		c.Why = api.Textf("Of %d holds, %d pairs overlapped, but no first holder wrote after the second grant.",
			"%d 次持锁中有 %d 对重叠，但先持锁者在后者拿到锁之后都没有写入。", c.Holds, c.Idle)
	default:
		c.Why = api.Textf("None of %d holds overlapped with another.", "%d 次持锁互不重叠。", c.Holds)
	}
	return c
}

func (c *MutualExclusion) add(o Overlap) {
	if !o.Acted {
		c.Idle++
	}
	if o.Acted || c.Idle <= mostIdle {
		c.Overlaps = append(c.Overlaps, o)
	}
	if o.Acted && c.Verdict == api.Holds {
		c.Verdict = api.Broken
		c.Why = api.Textf("%s on %s was granted %s at %v although %s on %s had held it since %v, and then wrote.",
			"%[1]s（%[2]s）在 %[4]v 拿到 %[3]s，而 %[5]s（%[6]s）从 %[7]v 起一直持有它，之后又写入。",
			o.Second.Owner, o.Second.Replica, o.Second.Key, brief(o.Second.From), o.First.Owner, o.First.Replica, brief(o.First.From))
	}
}

// holdsOf returns all holds in the order of their grants. Nested entries of an owner are one hold.
func holdsOf(rec history.Recording) []*Hold {
	// An owner's name on two replicas means two holders.
	type holder struct{ key, owner, replica string }
	var all []*Hold
	held := map[holder]*Hold{}
	for i, e := range rec.Events {
		id := holder{e.Key, e.Owner, e.Replica}
		h := held[id]
		if h == nil && e.Step == api.Granted {
			h = &Hold{Key: e.Key, Owner: e.Owner, Replica: e.Replica, From: e.At, granted: i, end: none}
			held[id] = h
			all = append(all, h)
		}
		if h == nil {
			continue
		}
		switch e.Step {
		case api.Granted:
			h.entered++
		case api.Writing, api.Written:
			h.acts = append(h.acts, i)
		case api.Released:
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

func (h *Hold) endUnreleased(rec history.Recording) {
	h.To, h.end = rec.Events[len(rec.Events)-1].At, len(rec.Events)
	for _, s := range rec.Spans {
		if s.Who == h.Replica && s.Kind() == history.Killed && s.From >= h.From && s.From < h.To {
			h.To = s.From
			h.end = sort.Search(len(rec.Events), func(i int) bool { return rec.Events[i].At >= s.From })
		}
	}
}
