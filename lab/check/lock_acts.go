package check

import (
	"cmp"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// LockActs returns the acts on a lock in a recording of one key, each with one permit. A request enters between its
// steps asked and granted, and leaves between its last step in the critical section and released. Without a release, it
// leaves at any time after its last step, or never. A request that did nothing under the lock is left out.
//
// A lease may end when its time is over since asked. A renewed lease may end half its time after a fault of the holder's
// replica began, since it is renewed after a third. After a fault of a server, any lock may be gone at once, and so may a
// lock without a lease after any fault.
func LockActs(rec history.Recording) (acts []LockOp) {
	type request struct{ owner, replica string }
	steps := map[request][]history.Event{}
	var order []request
	for _, e := range rec.Events {
		id := request{e.Owner, e.Replica}
		if steps[id] == nil {
			order = append(order, id)
		}
		steps[id] = append(steps[id], e)
	}
	for _, id := range order {
		all := steps[id]
		granted := slices.IndexFunc(all, func(e history.Event) bool { return e.Step == api.Granted })
		used := func(e history.Event) bool { return e.Step != api.Released }
		if granted < 0 || !slices.ContainsFunc(all[granted+1:], used) {
			continue // it may never have been granted, or was granted so late that its lease had ended, which it noticed
		}
		owner := id.owner + " on " + id.replica
		enter := LockOp{Act: Enter, Owner: owner, Permits: 1, Fence: all[granted].Fence, Call: all[0].At, Return: all[granted].At}
		leave := LockOp{Act: Leave, Owner: owner, Permits: 1, Call: all[len(all)-1].At, Return: Open}
		if last := len(all) - 1; all[last].Step == api.Released {
			leave.Call, leave.Return = all[last-1].At, all[last].At
		}
		acts = append(acts, enter, leave)
		if end := MayEnd(rec, enter, id.replica, leave.Return); end < leave.Return {
			acts = append(acts, LockOp{Act: Expire, Owner: owner, Call: max(end, enter.Call), Return: Open})
		}
	}
	return acts
}

// MayEnd returns the first time at which the lease of a grant may end, or Open. The holder is on a replica.
func MayEnd(rec history.Recording, enter LockOp, replica string, released time.Duration) time.Duration {
	end := Open
	if rec.Lease > 0 && !rec.Renews {
		end = enter.Call + rec.Lease
	}
	for _, s := range rec.Spans {
		onReplica := s.OnReplica()
		if s.To < enter.Call || s.From > released || onReplica && s.Who != replica || s.Kind() == history.StatementHeld {
			continue
		}
		from := max(s.From, enter.Call)
		if onReplica {
			from += rec.Lease / 2
		}
		end = min(end, from)
	}
	return end
}

// Overtaking is a request that was granted a fair lock before one that had queued earlier.
type Overtaking struct {
	First, Second history.Event // the step queued of the first, and the step granted of the second
}

// Overtakings returns the pairs in which a request began after another one was in the queue, and was granted the lock before it.
// Ignore a pair if a fault, a cancel or the end of its wait removed the first from the queue.
func Overtakings(rec history.Recording) (pairs []Overtaking) {
	at := func(step api.Step) map[string]history.Event {
		found := map[string]history.Event{}
		for _, e := range rec.Events {
			if _, seen := found[e.Owner]; !seen && e.Step == step {
				found[e.Owner] = e
			}
		}
		return found
	}
	asked, queued, granted := at(api.Asked), at(api.Queued), at(api.Granted)
	for owner, first := range queued {
		own, was := granted[owner]
		for other, second := range granted {
			if was && other != owner && asked[other].At > first.At && second.At < own.At {
				pairs = append(pairs, Overtaking{first, second})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b Overtaking) int {
		return cmp.Or(cmp.Compare(a.First.At, b.First.At), cmp.Compare(a.Second.At, b.Second.At))
	})
	return pairs
}
