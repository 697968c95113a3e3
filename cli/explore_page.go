package cli

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/locks/explore"
	"oversell/view/frame"
	"oversell/view/ladder"
)

//go:embed explore.html.tmpl
var explorePageFiles embed.FS

// explorePage has the data of the page that explore writes.
type explorePage struct {
	explore.Result
	Command  string
	Picture  template.HTML // of the shortest schedule, or empty
	Title    api.Text      // of the picture
	Replay   string        // the command that repeats the shortest schedule
	Outcome  string        // of the shortest schedule, if it is known
	Root     *pageMove
	TreeNote api.Text // what the tree leaves out, or empty
}

// writePage writes the page of a search. Its commands name no database: they start one.
func (f *exploreFlags) writePage(cmd *cobra.Command, w io.Writer, r explore.Result, tree *explore.Tree) error {
	if r.Harm.Shortest().EN == "" {
		r.Shortest = nil
	}
	arguments, trail := []string{r.Strategy}, r.Trail()
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
	p := explorePage{Result: r, Title: r.Harm.Shortest(), Command: command, Replay: replay, Outcome: outcome}
	p.Root, p.TreeNote = treeOf(tree, r)
	if len(r.Shortest) > 0 {
		p.Picture = ladderOf(r.Shortest, r.Bounds.Clients, p.Title.EN).Inline("schedule")
	}
	return frame.Parse(explorePageFiles, "explore.html.tmpl").Execute(w, p)
}

// ladderOf returns the picture of a schedule, with a column for each client and each server.
func ladderOf(steps []explore.Step, clients int, title string) ladder.Ladder {
	l := ladder.Ladder{Title: title}
	for _, name := range []string{"A", "B", "C", "D", "E"}[:clients] {
		l.Columns = append(l.Columns, ladder.Column{Name: name, Client: true})
	}
	for _, name := range serversOf(steps) {
		l.Columns = append(l.Columns, ladder.Column{Name: name})
	}
	stopped := map[int]int{} // the bands that have not ended, by the column of the client
	for i, s := range steps {
		client, server := columnOf(l, s.Client), columnOf(l, s.Server)
		r := ladder.Rung{At: strconv.Itoa(i + 1), Column: max(client, 0), Words: strings.TrimSuffix(strings.TrimPrefix(s.Text, s.Client+": "), ".")}
		if client < 0 && server >= 0 {
			r.Column = server
		}
		if r.From, r.To = r.Column, r.Column; client >= 0 && server >= 0 {
			r.To = server
			r.Words = strings.TrimSuffix(r.Words, " on "+s.Server)
		}
		switch s.Kind {
		case explore.Deliver, explore.Statement, explore.Begin:
		case explore.Time:
			r.Kind = ladder.Gap
			r.Words += " 时间流逝"
		case explore.Hold, explore.Pause:
			r.Kind, stopped[client] = ladder.Fault, len(l.Bands)
			l.Bands = append(l.Bands, ladder.Band{Column: client, From: i, To: len(steps), Shape: ladder.Frozen})
		case explore.Resume:
			if b, ok := stopped[client]; ok {
				l.Bands[b].To = i
			}
		case explore.Crash:
			r.Kind = ladder.Fault
			l.Bands = append(l.Bands, ladder.Band{Column: client, From: i, To: len(steps), Shape: ladder.Failed})
		default:
			r.Kind = ladder.Fault
		}
		l.Rungs = append(l.Rungs, r)
	}
	return l
}

// serversOf returns the servers of a schedule. The database comes last, as in each sale.
func serversOf(steps []explore.Step) (servers []string) {
	for _, s := range steps {
		if s.Server != "" && !slices.Contains(servers, s.Server) {
			servers = append(servers, s.Server)
		}
	}
	slices.SortFunc(servers, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "mysql"), strings.Count(b, "mysql")), cmp.Compare(a, b))
	})
	return servers
}

// columnOf returns the column of a client or a server, or -1.
func columnOf(l ladder.Ladder, name string) int {
	return slices.IndexFunc(l.Columns, func(c ladder.Column) bool { return c.Name == name })
}
