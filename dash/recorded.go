package dash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/experiment"
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

// recordedSteps sends the script with every order of a strategy's steps.
func (s *Server) recordedSteps(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSuffix(r.PathValue("file"), ".js")
	c, err := s.catalogue.one(r.Context(), id)
	g := shortestOf(id).graph
	if err != nil || len(g.Nodes) == 0 {
		s.showProblem(w, r, fmt.Errorf("the steps of %s are not recorded: run `make steps strategy=%s`", id, id))
		return
	}
	recorded, err := json.Marshal(struct {
		stepper.Graph
		Solution *stepper.Solution      `json:"solution"`
		Left     []*stepper.Orders      `json:"left"` // by the node
		Program  [2][]stepper.Statement `json:"program"`
		Code     []api.File             `json:"code"`
		Marks    map[string]string      `json:"marks"` // the line of the code that runs after a step
	}{g, g.Solution(), g.Left(), [2][]stepper.Statement{g.Program(stepper.A, nil), g.Program(stepper.B, nil)}, c.Code, marks(codeFiles(c.Code), g)})
	if err != nil {
		s.showProblem(w, r, err)
		return
	}
	_, _ = fmt.Fprintf(w, "const recorded = %s;\n", recorded)
}

// marks returns file and line of each step, like the ids of the lines in a listing.
func marks(files []codeFile, g stepper.Graph) map[string]string {
	found := map[string]string{}
	for _, l := range g.Lines {
		if file, line, ok := lineOf(files, l.Step); ok {
			found[l.Step] = fmt.Sprintf("%d-%d", file, line)
		}
	}
	return found
}

// files returns the files that a page shows. In recorded mode, these are only the strategy's own: the first one, and
// its scripts. Many strategies share the others, and copies of these would be a tenth of the site.
func (s *Server) files(code []api.File) (shown []codeFile, others []string) {
	own := true
	for i, f := range codeFiles(code) {
		if own = own && (i == 0 || path.Ext(f.Name) != ".go"); own || s.Service == nil {
			shown = append(shown, f)
		} else {
			others = append(others, f.Name)
		}
	}
	return shown, others
}

// showRecorded shows the recorded verdicts like results of this lab.
func (b *breaks) showRecorded(cards []card) {
	for q, s := range b.recorded {
		if slices.ContainsFunc(cards, func(c card) bool { return c.ID == q.Strategy }) { // not removed since
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
	for _, c := range b.s.catalogue.known() {
		if c.ID == p.Strategy {
			run.Recording = c.Leased(run.Recording)
		}
	}
	return run
}

// hazardView has the results of one hazard on all strategies.
type hazardView struct {
	experiment.Experiment
	Results []hazardResult
}

type hazardResult struct {
	resultView
	Shown matrix.Run
}

// hazardPage shows the recorded results of a hazard, with timelines.
func (b *breaks) hazardPage(r *http.Request) (v view, err error) {
	e, known := experiment.Of(r.PathValue("hazard"))
	if !known {
		return v, reject(http.StatusNotFound, "Hazard %q does not exist.", "没有故障 %q。", r.PathValue("hazard"))
	}
	p := hazardView{Experiment: e}
	b.s.hub.Send("break", func() []hub.Message {
		for _, row := range b.rows(b.s.catalogue.known(), []experiment.Experiment{e}, true) {
			if x := row.Results[0]; x.Run != nil {
				p.Results = append(p.Results, hazardResult{resultView: x})
			}
		}
		return nil
	})
	for i, x := range p.Results {
		_, anchor, _ := strings.Cut(fileOf(x.Path()), "#")
		if p.Results[i].Shown, err = matrix.RunOf(x.Run.Result, language(r), anchor); err != nil {
			return v, err
		}
	}
	return view{Page: "break", Title: verbatim(e.Hazard), Data: p}, nil
}
