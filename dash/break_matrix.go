package dash

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/experiment"
	"oversell/view/matrix"
)

// matrixFilter says which part of the matrix a page shows. It is in the page's address, so that it
// survives a reload, and a change of language.
type matrixFilter struct {
	Words string     // of the search
	All   bool       // all rows and columns, not only the basic ones
	Hide  bool       // hide the recorded verdicts, for a class that predicts them
	Sort  api.Hazard // the hazard by whose verdicts the rows are sorted
}

func filterOf(r *http.Request) matrixFilter {
	all := r.FormValue("all") != "" || r.URL.Path == "/dash/break/all" // of the recorded mode
	f := matrixFilter{strings.TrimSpace(r.FormValue("q")), all, r.FormValue("hide") != "", api.Hazard(r.FormValue("sort"))}
	if f.Hide {
		f.Sort = "" // the order would tell the verdicts
	}
	return f
}

type matrixView struct {
	matrixFilter
	Hazards         []experiment.Experiment
	Families        []matrixFamily
	Count           int  // of the changes so far: see breaks
	Unmatched       bool // neither a row nor a column matches the search
	Rows, Survivors int  // of a sorted matrix
}

// matrixFamily has the rows of a family of strategies, such as redis.
type matrixFamily struct {
	Title api.Text
	Rows  []matrixRow
}

type matrixRow struct {
	resultKey // without a hazard
	Results   []resultView
}

type resultView struct {
	resultKey
	Able      bool // this machine can run the experiment
	AppliesTo bool // the hazard applies if the strategy is named
	Applies   bool // the hazard applies, with or without the fence
	Claim     api.Claim
	Running   bool
	Starting  bool            // the lab of the experiment starts, or stops
	Run       *storedResult   // nil before the first run
	Recorded  *matrix.Summary // nil without recorded runs
	Plan      string          // that a visitor has made up
}

// Body returns the form fields of the request that starts the experiment.
func (p resultView) Body() string {
	form := url.Values{"hazard": {string(p.Hazard)}, "strategy": {p.Strategy}}
	if p.Fenced {
		form.Set("fenced", "true")
	}
	if p.Plan != "" {
		form.Set("plan", p.Plan)
	}
	return form.Encode()
}

// Verdict returns the verdict of the run in this lab, or else the recorded one, or else "".
func (p resultView) Verdict() api.Verdict {
	switch {
	case p.Run != nil:
		return p.Run.Verdict
	case p.Recorded != nil:
		return p.Recorded.Verdict
	}
	return ""
}

// experiments returns those that have a column. The hub's mutex must be locked.
func (b *breaks) experiments() []experiment.Experiment {
	all := experiment.WithRandomPlans()
	if len(b.made) > 0 {
		all = append([]experiment.Experiment{experiment.MadeUp(b.made)}, all...)
	}
	return all
}

// matrix returns the results that the filter selects. The hub's mutex must be locked.
func (b *breaks) matrix(f matrixFilter) matrixView {
	m := matrixView{matrixFilter: f, Count: b.count}
	all, cards := b.experiments(), b.s.catalogue.known()
	if b.s.Service != nil {
		all = slices.DeleteFunc(all, func(e experiment.Experiment) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Keys(b.recorded)), func(q resultKey) bool { return q.Hazard == e.Hazard })
		})
	}
	found := find(f.Words, all, cards)
	m.Unmatched = f.Words != "" && len(found) == 0
	all = choose(all, func(e experiment.Experiment) bool { return found[string(e.Hazard)] }, func(e experiment.Experiment) bool { return f.All || e.Basic || e.Hazard == experiment.Made })
	cards = choose(cards, func(c api.Card) bool { return found[c.ID] }, func(c api.Card) bool { return f.All || c.Core })
	m.Hazards = all
	for _, g := range groupsOf(cards) {
		m.Families = append(m.Families, matrixFamily{g.Title, b.rows(g.Cards, all, f.All || len(found) > 0)})
	}
	m.sort()
	return m
}

// rows returns the rows of the cards, also those with a fencing token if fenced is true.
func (b *breaks) rows(cards []api.Card, hazards []experiment.Experiment, fenced bool) (rows []matrixRow) {
	for _, c := range cards {
		for _, f := range []bool{false, true} {
			if f && (!fenced || !c.Fenced) {
				continue
			}
			row := matrixRow{resultKey: resultKey{Strategy: c.ID, Fenced: f}}
			for _, e := range hazards {
				row.Results = append(row.Results, b.view(c, e, f))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// choose returns the items that match the search. If none does, it returns the others that the page shows.
func choose[T any](items []T, match, shown func(T) bool) []T {
	if slices.ContainsFunc(items, match) {
		shown = match
	}
	return slices.DeleteFunc(slices.Clone(items), func(i T) bool { return !shown(i) })
}

// find returns the ids of the hazards and strategies that contain one of the words. It looks into the
// titles only for a word that no id contains: the titles of many hazards mention redis.
func find(words string, hazards []experiment.Experiment, cards []api.Card) map[string]bool {
	titles, found := map[string]api.Text{}, map[string]bool{}
	for _, e := range hazards {
		titles[string(e.Hazard)] = e.Title
	}
	for _, c := range cards {
		titles[c.ID] = c.Title
	}
	for _, word := range strings.Fields(strings.ToLower(words)) {
		some := false
		for id := range titles {
			if strings.Contains(id, word) {
				some, found[id] = true, true
			}
		}
		for id, title := range titles {
			if !some && strings.Contains(strings.ToLower(title.EN+" "+title.ZH), word) {
				found[id] = true
			}
		}
	}
	return found
}

// sort puts the rows whose strategy survives the chosen hazard first. The others fail at it.
func (m *matrixView) sort() {
	x := slices.IndexFunc(m.Hazards, func(e experiment.Experiment) bool { return e.Hazard == m.Sort })
	if x < 0 {
		m.Sort = ""
		return
	}
	var rows []matrixRow
	for _, f := range m.Families {
		rows = append(rows, f.Rows...)
	}
	rows = slices.DeleteFunc(rows, func(r matrixRow) bool { return r.Results[x].Verdict() == "" })
	rank := func(r matrixRow) int {
		return slices.Index([]string{"safe", "cost", "harm", "doubt"}, r.Results[x].Verdict().Class())
	}
	slices.SortStableFunc(rows, func(a, b matrixRow) int { return rank(a) - rank(b) })
	m.Families, m.Rows = []matrixFamily{{Rows: rows}}, len(rows)
	for _, r := range rows {
		if survives(r.Results[x].Verdict()) {
			m.Survivors++
		}
	}
}

// survives reports whether a strategy was correct, perhaps at a cost.
func survives(v api.Verdict) bool { return v.Class() == "safe" || v.Class() == "cost" }

// column draws these hazards' results in the latest plan. The hub's mutex must be locked.
func (b *breaks) column(hazards ...api.Hazard) []hub.Part {
	parts := []hub.Part{}
	for _, e := range b.experiments() {
		if !slices.Contains(hazards, e.Hazard) {
			continue
		}
		for _, row := range b.rows(b.s.catalogue.known(), []experiment.Experiment{e}, true) {
			if p := row.Results[0]; p.Applies && b.now.includes(p.resultKey) {
				parts = append(parts, b.s.render("break", "result", p.ID(), p))
			}
		}
	}
	return parts
}

// view returns what the page shows about one result. The hub's mutex must be locked.
func (b *breaks) view(c api.Card, e experiment.Experiment, fenced bool) resultView {
	q := resultKey{e.Hazard, c.ID, fenced}
	p := resultView{resultKey: q, Able: b.s.Binary != "", AppliesTo: e.AppliesTo(c), Claim: e.Claim(c, fenced), Run: b.runs[q]}
	p.Applies = p.AppliesTo && (!fenced || e.Fenced) && b.s.Service == nil || p.Run != nil
	p.Running = b.now.Running && b.now.Hazard == e.Hazard && p.Applies && b.now.includes(q)
	p.Starting = b.now.Starting
	if e.Hazard == experiment.Made {
		p.Plan = e.Plans[0]
	}
	if s, there := b.recorded[q]; there {
		p.Recorded = &s
	}
	return p
}
