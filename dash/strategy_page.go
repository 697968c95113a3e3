package dash

import (
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/docs"
	"oversell/lab/experiment"
	"oversell/view/stage"
)

type strategyView struct {
	api.Card
	Rows     []matrixRow // of the basic matrix: without and with the fencing token
	Explored []api.Text  // a sentence for each search of all schedules
	Others   []string    // files that run too, and that only the page Step shows; only in a site
}

// System draws the system with the place of the lock.
func (x strategyView) System(lang string) template.HTML { return systemWith(x.Card, lang) }

// systemWith draws the system with the place of a lock, which one replica holds while the others wait for it.
func systemWith(c api.Card, lang string) template.HTML {
	s := stage.Stage{
		Lock: stage.PlaceOf(c), Row: "10", Clients: []stage.Box{{Name: "A"}, {Name: "B"}, {Name: "C"}},
		Replicas: []stage.Box{{Name: "replica-1"}, {Name: "replica-2"}, {Name: "replica-3"}},
	}
	if c.Locker && c.Scope == api.ScopeShared {
		s.Holder, s.Queue = "A", []string{"B", "C"}
		s.Replicas[0].State, s.Replicas[1].State, s.Replicas[2].State = stage.Holding, stage.Waiting, stage.Waiting
	}
	return s.SVG("system", lang)
}

// Main returns the lines that matter most: the method of the first file that acquires the lock or
// sells, with its comment. A short method leaves the work to the next function, so Main adds that
// function. Without such a method, Main returns the function that makes the strategy.
func (x strategyView) Main() []string {
	if len(x.Code) == 0 {
		return nil
	}
	lines := linesOf(x.Code[0].Text)
	shown, rest := function(lines, mainMethod)
	if shown == nil {
		shown, rest = function(lines, constructor)
	}
	next, _ := function(rest, anyFunction)
	if len(shown) >= shortMethod || next == nil || slices.ContainsFunc(next, aside.MatchString) {
		return shown
	}
	return slices.Concat(shown, []string{""}, next)
}

// shortMethod is the number of lines from which on Main shows a method alone.
const shortMethod = 15

var (
	mainMethod  = regexp.MustCompile(`^func \(\w+ \S+\) (Acquire|Deduct|acquire|deduct|take)\(`)
	constructor = regexp.MustCompile(`^func [A-Z]`)
	anyFunction = regexp.MustCompile(`^func `)
	aside       = regexp.MustCompile(`api\.Card \{$|\) Clear\(`)
)

// function returns the first function that matches, with its comment, and the lines after it.
func function(lines []string, pattern *regexp.Regexp) (found, rest []string) {
	from := slices.IndexFunc(lines, pattern.MatchString)
	if from < 0 {
		return nil, nil
	}
	end := from + 1
	if strings.HasSuffix(lines[from], "{") {
		end += slices.Index(lines[from+1:], "}") + 1
	}
	for from > 0 && strings.HasPrefix(lines[from-1], "//") {
		from--
	}
	return lines[from:end], lines[end:]
}

func linesOf(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

func routeStrategies(s *Server) {
	// This stream sends no content. Only an open stream tells the page that the lab is reachable.
	s.hub.Open("strategies", func() []hub.Message { return nil })
	s.page("/dash/learn/primitives/{id}", "primitive", func(r *http.Request) (view, error) {
		var x api.Primitive
		id := r.PathValue("id")
		missing := reject(http.StatusNotFound, "Primitive %q does not exist.", "没有同步原语 %q。", id)
		err := s.catalogue.get(r.Context(), "/primitives/"+url.PathEscape(id), &x, missing)
		x.Code, _ = s.files(x.Code)
		return view{Page: "strategies", Title: x.Title, Data: x}, err
	})
	s.page("/dash/learn/{id}", "strategy", func(r *http.Request) (view, error) {
		x, err := s.strategyView(r.Context(), r.PathValue("id"))
		return view{Page: "strategies", Title: api.Verbatim(x.ID), Data: x}, err
	})
}

func (s *Server) strategyView(ctx context.Context, id string) (x strategyView, err error) {
	c, err := s.catalogue.one(ctx, id)
	if err != nil {
		return x, err
	}
	x = strategyView{Card: c, Explored: explored(id)}
	x.Code, x.Others = s.files(c.Code)
	basic := slices.DeleteFunc(experiment.All(), func(e experiment.Experiment) bool { return !e.Basic })
	s.hub.Do(func() { x.Rows = s.breaks.rows([]api.Card{c}, basic, true) })
	return x, nil
}

// explored returns what the recorded searches of all schedules say about a strategy.
func explored(strategy string) []api.Text {
	var recorded struct {
		Sentences map[string][]api.Text `json:"sentences"`
	}
	if err := json.Unmarshal(docs.Explored, &recorded); err != nil {
		panic(err) // TestExplored checks the file
	}
	return recorded.Sentences[strategy]
}
