package dash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/player"
	"oversell/lab/stepper"
	"oversell/view/matrix"
)

// routeRecorded adds the pages that exist only in recorded mode.
func routeRecorded(s *Server) {
	s.routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { // the site begins with the course
		r.URL.Path = "/dash/course"
		s.routes.ServeHTTP(w, r)
	})
	s.pageWithGroups("/dash/step", "step", bilingual("Step", "单步"), func(_ *http.Request, groups []group) any { return groups })
	s.page("/dash/step/{id}", "replay", func(r *http.Request) (view, error) {
		c, err := s.catalogue.one(r.Context(), r.PathValue("id"))
		return view{Page: "step", Title: api.Textf("Step: %s", "单步：%s", c.ID), Data: scene{Card: c, Shortest: shortestOf(c.ID)}}, err
	})
	s.routes.HandleFunc("GET /dash/static/steps/{file}", s.recordedSteps)
	s.routes.HandleFunc("GET /dash/static/replay.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, siteFiles, "site/replay.js")
	})
	s.page("/dash/break/{hazard}", "hazard", s.breaks.hazardPage)
	s.pageWithGroups("/dash/break/all", "break", bilingual("Break", "破坏"), s.breaks.page)
}

// replay has every state of a strategy's two clients, drawn in English and Chinese by the templates of the page Step.
type replay struct {
	Lines    []string          `json:"lines"` // of HTML, each once: most parts share theirs with others
	Parts    [][2][]int        `json:"parts"` // in English and Chinese
	Listing  int               `json:"listing"`
	Nodes    []replayNode      `json:"nodes"`
	Solution *stepper.Solution `json:"solution"`
}

type replayNode struct {
	Moves [2]*replayMove `json:"moves"` // of A and B
	Parts map[string]int `json:"parts"` // by the id of the element
	Marks []mark         `json:"marks"`
	Row   int            `json:"row"`
	Over  bool           `json:"over,omitempty"`
	Lost  bool           `json:"lost,omitempty"`
}

type replayMove struct {
	To      int   `json:"to"`
	Entries []int `json:"entries"`
}

// recordedSteps sends the script with every order of a strategy's steps.
func (s *Server) recordedSteps(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSuffix(r.PathValue("file"), ".js")
	c, err := s.catalogue.one(r.Context(), id)
	now := scene{Number: 1, Card: c, Places: stepper.Places(c.Code), Open: true, Hint: true, Shortest: shortestOf(id)}
	if err != nil || !now.Shortest.Recorded {
		s.showProblem(w, r, fmt.Errorf("the steps of %s are not recorded: run `make steps strategy=%s`", id, id))
		return
	}
	_, _ = fmt.Fprint(w, "const recorded = ")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // a script may have <, and most of this one is HTML
	_ = e.Encode(s.replay(now))
}

// replay draws the states of a round that has not begun.
func (s *Server) replay(now scene) (all replay) {
	g, texts := now.Shortest.graph, []api.Text{}
	part := func(name string, data any) int { return place(&texts, s.render("step", name, "", data).Text) }
	paths := make([][]stepper.Client, len(g.Nodes)) // to each state; the states are in the order of their distance
	for at, n := range g.Nodes {
		now.show(paths[at], g.Log(paths[at]), n)
		round := now // without its last entry, which the script writes: another order of the moves may lead here
		round.Log = round.Log[:min(1, len(round.Log))]
		drawn := replayNode{Marks: now.marks(), Row: now.Row, Over: now.Over, Lost: now.Lost, Parts: map[string]int{
			"A": part("column", now.column(stepper.A)), "B": part("column", now.column(stepper.B)),
			"round": part("round", round), "place": part("place", now), "ahead": part("ahead", now),
		}}
		for client, move := range n.Moves {
			if move == nil {
				continue
			}
			taken := append(slices.Clip(paths[at]), stepper.Client(client))
			if move.To > at && paths[move.To] == nil {
				paths[move.To] = taken
			}
			entries := g.Log(taken)
			drawn.Moves[client] = &replayMove{To: move.To}
			for _, e := range entries[len(entries)-len(move.Log):] {
				e.Move = 0
				drawn.Moves[client].Entries = append(drawn.Moves[client].Entries, part("entry", e))
			}
		}
		all.Nodes = append(all.Nodes, drawn)
	}
	all.Listing, all.Solution = part("listing", now), g.Solution()
	for _, t := range texts {
		var lines [2][]int
		for i, html := range []string{t.EN, t.ZH} {
			for line := range strings.SplitSeq(html, "\n") {
				lines[i] = append(lines[i], place(&all.Lines, line))
			}
		}
		all.Parts = append(all.Parts, lines)
	}
	return all
}

// place returns the index of an item in a list, to which it adds a new item.
func place[T comparable](list *[]T, item T) int {
	i := slices.Index(*list, item)
	if i < 0 {
		i = len(*list)
		*list = append(*list, item)
	}
	return i
}

// files returns the files that a page shows. In recorded mode, these are only the strategy's own: the first one, and
// its scripts. Many strategies share the others, and copies of these would be a tenth of the site.
func (s *Server) files(code []api.File) (shown []api.File, others []string) {
	own := true
	for i, f := range code {
		if own = own && (i == 0 || path.Ext(f.Name) != ".go"); own || s.Service == nil {
			shown = append(shown, f)
		} else {
			others = append(others, f.Name)
		}
	}
	return shown, others
}

// showRecorded shows the recorded verdicts like results of this lab.
func (b *breaks) showRecorded(cards []api.Card) {
	for q, s := range b.recorded {
		if _, err := findCard(cards, q.Strategy, 0); err == nil { // not removed since
			b.runs[q] = &storedResult{Result: b.recordedRun(resultView{resultKey: q, Recorded: &s})}
		}
	}
}

// recordedRun returns a run with the recorded verdict. It has a recording if there is a claim about it, or harm.
func (b *breaks) recordedRun(p resultView) experiment.Result {
	if p.Recorded == nil {
		return experiment.Result{}
	}
	run, there := b.recordings()[p.resultKey]
	if !there || run.Verdict != p.Recorded.Verdict {
		return experiment.Result{Hazard: p.Hazard, Strategy: p.Strategy, Fenced: p.Fenced, Claim: p.Recorded.Claim, Verdict: p.Recorded.Verdict, Why: p.Recorded.Why}
	}
	if c, err := findCard(b.s.catalogue.known(), p.Strategy, 0); err == nil {
		run.Recording = player.Leased(c, run.Recording)
	}
	return run
}

// hazardView has the results of one hazard on all strategies.
type hazardView struct {
	experiment.Experiment
	Plan    matrix.Plan // the first one; it may be empty
	Results []hazardResult
}

type hazardResult struct {
	resultView
	Shown matrix.Run
}

// hazardPage shows the recorded results of a hazard, with timelines.
func (b *breaks) hazardPage(r *http.Request) (v view, err error) {
	e, known := experiment.Of(api.Hazard(r.PathValue("hazard")))
	if !known {
		return v, reject(http.StatusNotFound, "Hazard %q does not exist.", "没有故障 %q。", r.PathValue("hazard"))
	}
	p := hazardView{Experiment: e, Plan: matrix.PlanOf(experiment.Result{Hazard: e.Hazard, Strategy: "redis"}.Planned(api.Card{}), language(r))}
	b.s.hub.Do(func() {
		for _, row := range b.rows(b.s.catalogue.known(), []experiment.Experiment{e}, true) {
			if x := row.Results[0]; x.Run != nil {
				_, anchor, _ := strings.Cut(fileOf(x.Path()), "#")
				p.Results = append(p.Results, hazardResult{x, matrix.RunOf(x.Run.Result, language(r), anchor)})
			}
		}
	})
	return view{Page: "break", Title: api.Verbatim(string(e.Hazard)), Data: p}, nil
}
