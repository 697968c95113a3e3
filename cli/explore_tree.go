package cli

import (
	"fmt"
	"slices"

	"oversell/api"
	"oversell/locks/explore"
	"oversell/view/terminal"
)

const (
	// countedMoves limits the tree of a search, which needs about 300 bytes for each move.
	countedMoves = 20_000
	// shownMoves limits the page to less than 2 MB.
	shownMoves = 3_000
)

// pageMove is a line of the tree of choices: a move, and those after it that had no alternative.
type pageMove struct {
	N        int // the number of the step; 0 for the root
	Text     string
	Class    string
	Then     []pageMove // the moves without an alternative
	Says     string     // 4 of 6 lose an update
	Percent  int        // that lose an update
	Open     bool       // the page shows what is below
	Marked   bool       // on the path of the shortest schedule that loses an update
	Pale     bool       // nothing goes wrong below
	Closes   bool       // from here on, each schedule loses an update
	Outcome  string
	Children []*pageMove
	More     api.Text // what the page leaves out here
}

// Body reports whether there is something to open.
func (m *pageMove) Body() bool {
	return len(m.Then)+len(m.Children) > 0 || m.Outcome != "" || m.More != (api.Text{})
}

// treeOf returns the tree for the page, and a sentence on what it leaves out.
func treeOf(tree *explore.Tree, r explore.Result) (root *pageMove, note api.Text) {
	v := treeView{shown: map[*explore.Tree]bool{tree: true}, left: shownMoves, path: map[*explore.Tree]bool{tree: true}, complete: r.Complete}
	n := tree
	for _, s := range r.Shortest {
		i := slices.IndexFunc(n.Children, func(c *explore.Tree) bool { return c.Token == s.Token })
		if i < 0 {
			break
		}
		n = n.Children[i]
		v.path[n] = true
	}
	v.show(tree, func(n *explore.Tree) bool { return v.path[n] })
	v.show(tree, func(n *explore.Tree) bool { return n.Oversold+n.Stalled > 0 })
	v.show(tree, func(*explore.Tree) bool { return true })
	root = v.move(tree, nil, 0)
	switch {
	case v.left > 0 && !v.cut:
	case v.left > 0:
		note = api.Textf("The tree has the first %d steps of each schedule, because more than %s moves need too much memory.", "树只包含每种调度的前 %d 步，因为超过 %s 个步骤会占用太多内存。", v.depth, terminal.Number(countedMoves))
	default:
		note = api.Textf("The page shows %s moves, those that lose an update first.", "本页显示 %s 个步骤，优先显示丢失更新的步骤。", terminal.Number(shownMoves))
	}
	return root, note
}

// treeView selects the moves of a tree that the page shows.
type treeView struct {
	shown, path map[*explore.Tree]bool
	left        int // number of moves that still fit
	complete    bool
	cut         bool // the limit of the search has removed moves
	depth       int  // of the deepest move
}

// show selects moves level by level, as long as they fit. The parents of all wanted moves must be
// wanted, too.
func (v *treeView) show(root *explore.Tree, wanted func(*explore.Tree) bool) {
	for queue := []*explore.Tree{root}; len(queue) > 0; queue = queue[1:] {
		for _, c := range queue[0].Children {
			if !v.shown[c] && v.left > 0 && wanted(c) {
				v.shown[c] = true
				v.left--
			}
			if v.shown[c] {
				queue = append(queue, c)
			}
		}
	}
}

func (v *treeView) move(t, parent *explore.Tree, depth int) *pageMove {
	v.depth = max(v.depth, depth)
	m := &pageMove{
		N: depth, Text: t.Text, Class: moveClass(t.Step), Says: countsOf(t), Open: v.path[t], Marked: v.path[t] && t.Oversold > 0, Pale: t.Oversold+t.Stalled == 0,
		Percent: max(100*t.Oversold/max(1, t.Schedules), min(1, t.Oversold)), // 0 only if none loses an update
		Closes:  v.complete && v.path[t] && parent != nil && t.Oversold == t.Schedules && parent.Oversold < parent.Schedules,
	}
	for depth > 0 && len(t.Children) == 1 && v.shown[t.Children[0]] {
		t = t.Children[0]
		depth++
		m.Then = append(m.Then, pageMove{N: depth, Text: t.Text, Class: moveClass(t.Step)})
	}
	v.depth = max(v.depth, depth)
	m.Outcome = t.Outcome
	var rest explore.Tree
	for _, c := range t.Children {
		if v.shown[c] {
			m.Children = append(m.Children, v.move(c, t, depth+1))
			continue
		}
		rest.Children = append(rest.Children, c)
		rest.Schedules, rest.Oversold, rest.Stalled = rest.Schedules+c.Schedules, rest.Oversold+c.Oversold, rest.Stalled+c.Stalled
	}
	switch n := len(rest.Children); {
	case n > 0:
		m.More = api.Textf("%d more: %s", "另有 %[1]d 个步骤", n, countsOf(&rest))
	case len(t.Children) == 0 && t.Outcome == "" && t.Schedules > 0:
		v.cut = true
		m.More = api.Text{EN: "The schedules go on from here.", ZH: "调度从这里继续。"}
	}
	return m
}

// countsOf says how many of the schedules go wrong.
func countsOf(t *explore.Tree) string {
	verb := "lose"
	if t.Oversold == 1 {
		verb = "loses"
	}
	says := fmt.Sprintf("%s of %s %s an update", terminal.Number(t.Oversold), terminal.Number(t.Schedules), verb)
	if t.Stalled > 0 {
		says += fmt.Sprintf(", %s with a client that waits in vain", terminal.Number(t.Stalled))
	}
	return says
}

func moveClass(s explore.Step) string {
	switch s.Kind {
	case explore.Time:
		return "time"
	case explore.Begin, explore.Deliver, explore.Statement, explore.Resume:
		return "client-" + s.Client
	default:
		return "fault"
	}
}
