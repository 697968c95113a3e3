package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/locks/explore"
	"oversell/view/terminal"
)

//go:embed explore.html.tmpl
var explorePageText string

// explorePage has the data of the page that explore writes.
type explorePage struct {
	explore.Result
	Verdict  api.Text
	Extent   api.Text // whether these are all schedules
	Counts   []pageCount
	Command  string
	Lanes    []pageLane
	Steps    []pageStep
	Trail    string
	Replay   string // the command that repeats the shortest schedule
	Outcome  string // of the shortest schedule, if it is known
	Root     *pageMove
	TreeNote api.Text // what the tree leaves out, or empty
}

type pageCount struct {
	N     string
	Of    api.Text
	Alarm bool
}

// pageLane is a client or a server. Class is the colour of a client.
type pageLane struct{ Name, Class, State string }

// pageStep is a row of the timeline. From and To are the lines of its CSS grid.
type pageStep struct {
	N        int
	Text     string
	Class    string // its kind, and the colour of its client
	Lanes    []pageLane
	From, To int
	Mark     string // a sign on one of the lanes
	MarkAt   int
}

// laneColumn is the number of a lane's column in the grid. The first column has the number of the step.
func laneColumn(lane int) int { return lane + 2 }

// Column returns the column of a lane.
func (pageStep) Column(lane int) int { return laneColumn(lane) }

// TextColumn returns the column after all lanes.
func (s pageStep) TextColumn() int { return laneColumn(len(s.Lanes)) }

// TextColumn returns the column after all lanes.
func (p explorePage) TextColumn() int { return laneColumn(len(p.Lanes)) }

// writePage writes the page of a search. Its commands name no database: they start one.
func (f *exploreFlags) writePage(cmd *cobra.Command, w io.Writer, r explore.Result, tree *explore.Tree) error {
	if shortestOf(r) == nil {
		r.Shortest = nil
	}
	arguments, trail := []string{r.Strategy}, trailOf(r.Shortest)
	again := commandLine(cmd, arguments, "mysql")
	replay := commandLine(cmd, arguments, "mysql", "html", "json", "limit") + " --replay " + trail
	outcome := ""
	if onServer := r.MySQL != "" && cmd.Context().Err() != nil; trail != "" && !onServer { // otherwise, the server has ended
		_, o, err := explore.Replay(r.Scope, strings.Split(trail, ","))
		if err != nil {
			return err
		}
		outcome = o.String() + "."
		if o.Oversold() {
			outcome += " An update is lost."
		}
	}
	return writeExplorePage(w, r, tree, again, replay, outcome)
}

// writeExplorePage writes a page without scripts and other files. outcome may be empty.
func writeExplorePage(w io.Writer, r explore.Result, tree *explore.Tree, command, replay, outcome string) error {
	p := explorePage{
		Result: r, Verdict: exploreVerdict(r), Extent: exploreExtent(r), Counts: exploreCounts(r), Command: command,
		Trail: trailOf(r.Shortest), Replay: replay, Outcome: outcome,
	}
	p.Lanes, p.Steps = timelineOf(r.Shortest, r.Bounds.Clients)
	p.Root, p.TreeNote = treeOf(tree, r)
	t, err := template.New("explore").Parse(explorePageText)
	if err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	return nil
}

// shortestOf says which schedule is shown, or returns nil: the card of a correct lock may allow the rest.
func shortestOf(r explore.Result) *api.Text {
	switch r.Harm {
	case explore.LosesUpdate:
		return &api.Text{EN: "The shortest schedule that loses an update", ZH: "丢失更新的最短调度"}
	case explore.WaitsInVain:
		return &api.Text{EN: "The shortest schedule in which a client waits in vain", ZH: "有客户端白等的最短调度"}
	}
	return nil
}

func exploreVerdict(r explore.Result) api.Text {
	n, of := terminal.Number(r.Oversold), terminal.Number(r.Schedules)
	switch {
	case r.Oversold == 0 && r.Stalled > 0:
		return api.Textf("%[1]s: none of %[2]s schedules loses an update, but in %[3]s a client waits in vain for the lock.", "%[1]s：%[2]s 种调度都没有丢失更新，但有 %[3]s 种里有客户端白等锁。",
			r.Strategy, of, terminal.Number(r.Stalled))
	case r.Oversold == 0:
		return api.Textf("%[1]s: none of %[2]s schedules loses an update.", "%[1]s：%[2]s 种调度都没有丢失更新。", r.Strategy, of)
	}
	return api.Textf("%[1]s: %[2]s of %[3]s schedules lose an update.", "%[1]s：%[3]s 种调度中有 %[2]s 种丢失更新。", r.Strategy, n, of)
}

// Title returns what the timeline shows.
func (p explorePage) Title() *api.Text { return shortestOf(p.Result) }

// Sign returns the sign of the verdict.
func (p explorePage) Sign() string {
	switch {
	case p.Oversold > 0:
		return "✗"
	case p.Stalled > 0:
		return "!"
	case p.Complete:
		return "✓"
	}
	return "?"
}

func exploreExtent(r explore.Result) api.Text {
	if r.Complete {
		return api.Text{EN: "These are all schedules within the bounds.", ZH: "这是界限内的全部调度。"}
	}
	return api.Text{EN: "These are not all schedules: the search was ended before it was complete.", ZH: "这不是全部调度：搜索在完成之前就结束了。"}
}

func exploreCounts(r explore.Result) []pageCount {
	return []pageCount{
		{terminal.Number(r.Oversold), api.Text{EN: "lose an update", ZH: "丢失更新"}, r.Oversold > 0},
		{terminal.Number(r.Two), api.Text{EN: "have two holders at the same time, which may do no harm", ZH: "同时有两个持有者（不一定有害）"}, false},
		{terminal.Number(r.Stalled), api.Text{EN: "end with a client that waits in vain for the lock", ZH: "有客户端白等锁"}, r.Stalled > 0},
		{terminal.Number(r.Aborted), api.Text{EN: "end with a client that gives up and takes nothing", ZH: "有客户端放弃，没有扣减库存"}, false},
	}
}

func trailOf(steps []explore.Step) string {
	var tokens []string
	for _, s := range steps {
		tokens = append(tokens, s.Token)
	}
	return strings.Join(tokens, ",")
}

// timelineOf returns a lane for each client and each server of a schedule, and a row for each step.
func timelineOf(steps []explore.Step, clients int) (lanes []pageLane, rows []pageStep) {
	var servers []string
	for _, s := range steps {
		if s.Server != "" && !slices.Contains(servers, s.Server) {
			servers = append(servers, s.Server)
		}
	}
	slices.SortFunc(servers, func(a, b string) int { // the database comes last, as in each sale
		return cmp.Or(cmp.Compare(strings.Count(a, "mysql"), strings.Count(b, "mysql")), cmp.Compare(a, b))
	})
	for _, name := range []string{"A", "B", "C", "D", "E"}[:clients] {
		lanes = append(lanes, pageLane{Name: name, Class: "client-" + name})
	}
	for _, name := range servers {
		lanes = append(lanes, pageLane{Name: name, Class: "server"})
	}
	for i, s := range steps {
		rows = append(rows, rowOf(i+1, s, lanes))
	}
	return slices.Clone(lanes), rows
}

// rowOf returns the row of a step. The states of the lanes change with it.
func rowOf(n int, s explore.Step, lanes []pageLane) pageStep {
	row := pageStep{N: n, Text: s.Text, Class: "client-" + s.Client}
	lane := func(name string) int {
		return slices.IndexFunc(lanes, func(l pageLane) bool { return l.Name == name })
	}
	client, server := lane(s.Client), lane(s.Server)
	if client >= 0 && server >= 0 {
		row.From, row.To = laneColumn(client), laneColumn(server)+1
	}
	switch s.Kind {
	case explore.Time:
		row.Class = "time"
	case explore.Deliver, explore.Statement:
	case explore.Begin, explore.Resume:
		row.Mark, row.MarkAt = "▶", laneColumn(client)
	default:
		row.Class += " fault " + string(s.Kind)
		row.Mark, row.MarkAt = "✗", laneColumn(client)
		if client < 0 {
			row.MarkAt = laneColumn(server)
		}
	}
	row.Lanes = slices.Clone(lanes)
	switch s.Kind {
	case explore.Hold, explore.Pause:
		row.Mark, lanes[client].State = "❚❚", "paused"
	case explore.Crash:
		lanes[client].State = "crashed"
	case explore.Resume:
		lanes[client].State = ""
	}
	return row
}
