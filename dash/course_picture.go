package dash

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/docs"
	"oversell/lab/course"
	"oversell/lab/exercise"
	"oversell/lab/measure"
	"oversell/lab/stepper"
	"oversell/view/ladder"
	"oversell/view/stage"
	"oversell/view/terminal"
)

// exhibit is a sentence about the run of a question, its picture, or both.
type exhibit struct {
	course.Sentence
	Picture api.Text // HTML; may be empty
	Open    bool     // the picture is shown at once, above the others: the first one that shows harm
}

// sale compares what a strategy sold with what was taken from the stock. The widths are in per cent.
type sale struct {
	measure.Result
	Sold, Taken, Lost          string
	Wide, TakenWide, Gap, Fast string // Fast is empty if there is nothing to compare
}

// exhibits returns the sentences and pictures of a run, and those of commands that are always the same.
func (p *coursePage) exhibits(t *questionState, r *course.Results) (all []exhibit) {
	id := t.Of.EN + "-" + t.ID
	draw := func(n int, of func(lang string) ladder.Ladder) api.Text {
		return inBoth(func(lang string) template.HTML { return of(lang).Inline(fmt.Sprintf("%s-%d", id, n)) })
	}
	for _, v := range r.Verdicts {
		if v.Class == "holds" && v.Experiment == nil && len(r.Runs) > 0 {
			continue // the bars say the same
		}
		x := exhibit{Sentence: v}
		if e := v.Experiment; e != nil && !ladder.OfRecording(e.Recording).Empty() {
			x.Picture = draw(len(all), ladder.OfRecording(e.Recording).InLanguage)
		}
		all = append(all, x)
	}
	if recorded := ladder.OfRecording(r.Recording); !recorded.Empty() {
		all = append(all, exhibit{Picture: draw(len(all), recorded.InLanguage)})
	}
	for _, c := range t.In["en"].Commands {
		if of := played(c); of != nil {
			all = append(all, exhibit{Picture: draw(len(all), of)})
		}
	}
	pictured := func(x exhibit) bool { return x.Picture.EN != "" }
	first := slices.IndexFunc(all, func(x exhibit) bool { return pictured(x) && x.Class == "broken" })
	if first < 0 {
		first = slices.IndexFunc(all, pictured)
	}
	if first >= 0 {
		all[first].Open = true
		all[0], all[first] = all[first], all[0]
	}
	return all
}

// played returns the ladder of a command that takes the same steps each time, or nil.
func played(c course.Command) func(lang string) ladder.Ladder {
	if len(c.Args) < 2 {
		return nil
	}
	switch c.Args[0] {
	case "exercise":
		if e, err := exercise.Find(c.Args[1]); err == nil {
			return func(lang string) ladder.Ladder { return ladder.OfExercise(e, lang) }
		}
	case "step":
		graphs, _ := stepper.Recordings(docs.Steps) // no error: a test reads them
		if g := graphs[c.Args[1]]; g.Solution() != nil {
			log := g.Log(g.Solution().Moves)
			return func(lang string) ladder.Ladder {
				return ladder.OfSteps(log, stepper.Locks(g.Program(stepper.A, nil)), lang)
			}
		}
	}
	return nil
}

// sales returns the bars of a comparison.
func sales(runs []measure.Result) (all []sale) {
	most, fastest := 1, 1e-9
	for _, r := range runs {
		most, fastest = max(most, r.Sold), max(fastest, r.Rate())
	}
	wide := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(max(0, n))/float64(most)) }
	for _, r := range runs {
		if r.Remaining == nil {
			continue
		}
		taken := r.Stock - *r.Remaining
		s := sale{Result: r, Sold: terminal.Number(r.Sold), Taken: terminal.Number(taken), Wide: wide(r.Sold), TakenWide: wide(min(taken, r.Sold))}
		if lost := r.Sold - taken; lost > 0 {
			s.Lost, s.Gap = terminal.Number(lost), wide(lost)
		}
		if len(runs) > 1 && !r.ErrorsOnly() {
			s.Fast = fmt.Sprintf("%.1f%%", 100*r.Rate()/fastest)
		}
		all = append(all, s)
	}
	return all
}

// system draws the system that the question is about: before and during a run with the fault, and after it with the
// stock of the first strategy that lost an update.
func (p *coursePage) system(t *questionState, runs []measure.Result) api.Text {
	var words []string // the first one that is the name of a strategy counts
	var url string
	for _, c := range t.In["en"].Commands {
		if words = append(words, c.Args...); c.URL != nil {
			url, words = c.URL.Path, append(words, c.URL.Query().Get("strategy"))
		}
	}
	cards := p.s.catalogue.known()
	at := slices.IndexFunc(words, func(w string) bool { _, err := findCard(cards, w, 0); return err == nil })
	s := p.s.system(append(words, "none")[max(0, at)])
	if strings.HasPrefix(url, "/test/") && s.Lock == stage.Nowhere { // a primitive
		if s.Lock = "Redis"; strings.Contains(url, "barrier") || strings.Contains(url, "counter") {
			s.Lock = "ZooKeeper"
		}
	}
	if !slices.Contains(words, "run") {
		if s.Clients = []stage.Box{{Name: "A"}, {Name: "B"}}; url == "" {
			s.Row = "10"
		}
	}
	if state := map[string]stage.State{"pause": stage.Frozen, "crash": stage.Dead}[append(words, "", "")[1]]; state != "" && t.Running {
		s.Replicas[0].State = state
	}
	if len(runs) > 0 {
		r := runs[max(0, slices.IndexFunc(runs, func(r measure.Result) bool { return r.LostUpdates > 0 }))]
		s = p.s.system(r.Strategy)
		if s.Clients[0].Name = terminal.Number(r.Clients); r.Remaining != nil {
			s = withStock(s, r.Stock, r.Sold, *r.Remaining)
		}
	}
	if i := slices.Index(words, "--replicas") + 1; i > 0 && i < len(words) {
		if n, err := strconv.Atoi(words[i]); err == nil && n > 0 {
			s.Replicas = s.Replicas[:min(n, len(s.Replicas))]
		}
	}
	return inBoth(func(lang string) template.HTML { return s.SVG(t.ID+"-system", lang) })
}

// Recorded names the recorded runs of the experiments, which have pages of their own in recorded mode.
func (t *questionState) Recorded() (all []resultKey) {
	for _, c := range t.In["en"].Commands {
		if len(c.Args) < 3 || c.Args[0] != "break" {
			continue
		}
		for _, strategy := range c.Args[2:] {
			if !strings.HasPrefix(strategy, "--") {
				all = append(all, resultKey{api.Hazard(c.Args[1]), strategy, slices.Contains(c.Args, "--fenced")})
			}
		}
	}
	return all
}
