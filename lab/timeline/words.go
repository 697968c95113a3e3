package timeline

import (
	"fmt"
	"strconv"
	"strings"

	"oversell/lab/history"
)

// Table is a picture's facts as figures. The first column is its rows' heading.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// Requests are the rows of the picture. Times are in seconds since it begins.
func (t Timeline) Requests() Table {
	table := Table{Caption: "The requests, times in seconds", Head: []string{"Request", "Replica", "Sent", "Steps", "Fence", "Answered", "Answer"}}
	for _, task := range t.tasks {
		sent, answered := "", ""
		if task.op != nil {
			sent, answered = t.since(task.op.Call), t.since(task.op.Return)
		}
		table.Rows = append(table.Rows, []string{
			task.name, task.replica, sent, t.steps(task), task.fences(), answered, task.answer(),
		})
	}
	return table
}

// Moments are all that the picture shows besides the requests.
func (t Timeline) Moments() Table {
	table := Table{Caption: "What happened, times in seconds", Head: []string{"What", "Where", "From", "To"}}
	add := func(cells ...string) { table.Rows = append(table.Rows, cells) }
	for _, s := range t.spans {
		add(s.What, s.Who, t.since(s.From), t.since(s.To))
	}
	for _, o := range t.overlaps {
		add(o.words(), o.first.replica+", "+o.second.replica, t.since(o.from), t.since(o.to))
	}
	for _, task := range t.tasks {
		for _, h := range task.holds {
			if h.ragged {
				add(task.name+" was not seen to release", task.replica, t.since(h.from), "")
			}
		}
	}
	for _, s := range t.sales {
		add(fmt.Sprintf("%d sold so far", s.pieces), "", t.since(s.at), "")
	}
	for _, s := range t.taken {
		add(fmt.Sprintf("%d gone from the shelf", s.pieces), "", t.since(s.at), "")
	}
	return table
}

// Left says how many requests there was no room for.
func (t Timeline) Left() string {
	if t.left == 0 {
		return ""
	}
	return fmt.Sprintf("%d more requests are not shown.", t.left)
}

func (o overlap) words() string {
	words := o.first.name + " and " + o.second.name + " both held the lock"
	if o.acted {
		return words + ", and " + o.first.name + " went on to write"
	}
	return words + ", but " + o.first.name + " wrote no more"
}

func (t Timeline) steps(task *task) string {
	words := make([]string, len(task.events))
	for i, e := range task.events {
		words[i] = e.Step + " " + t.since(e.At)
	}
	return strings.Join(words, ", ")
}

// fences are the task's, usually one.
func (t *task) fences() string {
	var seen []string
	last := int64(0)
	for _, e := range t.events {
		if fence := fenceOf(e); fence > 0 && fence != last {
			last = fence
			seen = append(seen, strconv.FormatInt(last, 10))
		}
	}
	return strings.Join(seen, ", ")
}

// fenceOf is the fence that a holder bears, or 0. In a queue the number is a place.
func fenceOf(e history.Event) int64 {
	switch e.Step {
	case "granted", "read", "writing", "written", "released":
		return e.Fence
	}
	return 0
}

// answer is what the client was told, in few words.
func (t *task) answer() string {
	if t.op == nil {
		return "no answer seen"
	}
	words := map[history.Outcome]string{history.OK: "✓ ", history.Refused: "✗ ", history.Unknown: "? "}[t.op.Outcome] +
		strings.ReplaceAll(t.op.Reason, "_", " ")
	if t.op.HasRemaining {
		words += fmt.Sprintf(", %d left", t.op.Remaining)
	}
	return words
}

func (t Timeline) title() string {
	return fmt.Sprintf("Timeline of %s: %s in %.3f s", t.strategy, count(len(t.tasks)+t.left, "request"), (t.to - t.from).Seconds())
}

// describe tells the picture to those who don't see it.
func (t Timeline) describe() string {
	var all []string
	for _, s := range t.spans {
		all = append(all, fmt.Sprintf("%s on %s from %s to %s s.", s.What, s.Who, t.since(s.From), t.since(s.To)))
	}
	for _, task := range t.tasks {
		words := task.name + " on " + task.replica
		for _, h := range task.holds {
			words += " held the lock from " + t.since(h.from) + " to " + t.since(h.to) + " s,"
		}
		all = append(all, words+" answer: "+task.answer()+".")
	}
	for _, o := range t.overlaps {
		all = append(all, fmt.Sprintf("%s, from %s to %s s.", o.words(), t.since(o.from), t.since(o.to)))
	}
	if n := len(t.taken); n > 0 && len(t.sales) > 0 {
		all = append(all, fmt.Sprintf("%d sold, %d gone from the shelf.", t.sales[len(t.sales)-1].pieces, t.taken[n-1].pieces))
	}
	if left := t.Left(); left != "" {
		all = append(all, left)
	}
	return strings.Join(all, " ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
