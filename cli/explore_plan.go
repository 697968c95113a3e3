package cli

import (
	"slices"
	"strings"

	"oversell/lab/chaos"
	"oversell/trial/explore"
)

// planOf says a schedule in the words of a plan, which real servers repeat. ok is false if the words do not reach: a plan
// stops a request at its steps, and not between two commands of the lock.
func planOf(schedule []explore.Step) (text string, ok bool) {
	var moves []string
	add := func(move string) {
		if len(moves) == 0 || moves[len(moves)-1] != move {
			moves = append(moves, move)
		}
	}
	begun, stopped := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(schedule); {
		s := schedule[i]
		if s.Kind != explore.Deliver && s.Kind != explore.Begin {
			if s.Kind == explore.Hold && !stopped[s.Client] { // the message itself has arrived
				add(s.Client + sells(schedule, i, begun))
				begun[s.Client], stopped[s.Client] = true, true
			}
			fault, known := faultWords(s)
			if !known {
				return "", false
			}
			add(fault)
			i++
			continue
		}
		next := i
		for next < len(schedule) && schedule[next].Client == s.Client && (schedule[next].Kind == explore.Deliver || schedule[next].Kind == explore.Begin) {
			next++
		}
		switch at := stopAfter(schedule[:next], schedule[next:], s.Client); {
		case !begun[s.Client]:
			add(s.Client + sells(schedule, next-1, begun))
			stopped[s.Client] = at != ""
		case stopped[s.Client]:
			add(strings.TrimSpace(s.Client + " resumes" + at))
			stopped[s.Client] = at != ""
		case at != "":
			add(s.Client + " stops")
			stopped[s.Client] = true
		case !slices.ContainsFunc(schedule[next:], func(later explore.Step) bool { return later.Client == s.Client }):
			add(s.Client + " ends")
		}
		begun[s.Client] = true
		i = next
	}
	text = strings.Join(moves, ", ")
	_, err := chaos.Parse(text)
	return text, err == nil
}

// sells returns the words with which a client begins, if it has not: with the first step at which it stops.
func sells(schedule []explore.Step, last int, begun map[string]bool) string {
	client := schedule[last].Client
	if begun[client] {
		return " stops"
	}
	for end := last; end < len(schedule); end++ {
		ends := end+1 == len(schedule) || schedule[end+1].Client != client || schedule[end].Kind == explore.Hold
		if at := stopAfter(schedule[:end+1], schedule[end+1:], client); ends && at != "" {
			return " sells" + at
		}
	}
	return " sells"
}

// stopAfter returns where a client stops that has taken these steps, and takes some of those that follow. It is empty if the
// client waits for its lock then, or has ended.
func stopAfter(before, after []explore.Step, client string) string {
	did := func(steps []explore.Step, what string) bool {
		return slices.ContainsFunc(steps, func(s explore.Step) bool { return s.Client == client && strings.Contains(s.Text, what) })
	}
	switch goesOn := slices.ContainsFunc(after, func(s explore.Step) bool { return s.Client == client }); {
	case !goesOn:
		return ""
	case did(before, "write the stock"):
		return " at written"
	case did(before, "read the stock"):
		return " at writing"
	case slices.ContainsFunc(after, func(s explore.Step) bool { return s.Client == client && s.Kind == explore.Crash }):
		return " at granted"
	}
	return ""
}

// faultWords returns the words of a step that no client takes. A lost answer has none: its number is that of a command.
func faultWords(s explore.Step) (words string, ok bool) {
	switch s.Kind {
	case explore.Time:
		return "a lease passes", true
	case explore.Pause, explore.Hold:
		return s.Client + " freezes", true
	case explore.Resume:
		return s.Client + " thaws", true
	case explore.Crash:
		return s.Client + " dies", true
	case explore.Expire:
		return s.Client + " loses its session", s.Client != ""
	case explore.Failover:
		return "redis fails over", s.Server == "redis-1"
	}
	return "", false
}
