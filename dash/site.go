package dash

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/course"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/stepper"
	"oversell/lab/timeline"
)

//go:embed site
var siteFiles embed.FS

// Site has what a folder of pages shows without servers. The pages open from files.
type Site struct {
	Strategies []SiteStrategy
	Primitives []api.Primitive // with their code
	Matrix     matrix.Matrix
	About      matrix.About
	Databases  matrix.Databases
	// Runs are recorded runs for the timelines, at most one for each summary of Matrix.
	Runs []experiment.Result
}

// SiteStrategy is a strategy with its code and its recorded steps.
type SiteStrategy struct {
	api.Card
	Code  []api.File
	Steps stepper.Graph
}

// place is the place of a page in a site.
type place struct {
	file string // from the folder of the language
	lang string
}

// Static reports whether the page belongs to a site, which cannot run anything.
func (v view) Static() bool { return v.place != nil }

// Link returns the address of a page. In a site, this is the name of its file, from this page.
func (v view) Link(to string) string {
	if v.place == nil {
		return to
	}
	return v.up() + fileOf(to)
}

// Asset returns the address of a file of the folder static, which both languages share.
func (v view) Asset(name string) string {
	if v.place.lang == "zh" {
		name = "../static/" + name
	} else {
		name = "static/" + name
	}
	return v.up() + name
}

// Translation returns the address of this page in a language.
func (v view) Translation(lang string) string {
	switch lang {
	case v.place.lang:
		return path.Base(v.place.file)
	case "zh":
		return v.up() + "zh/" + v.place.file
	default:
		return v.up() + "../" + v.place.file
	}
}

func (v view) up() string { return strings.Repeat("../", strings.Count(v.place.file, "/")) }

// fileOf returns the file of a page, such as learn/redis.html for /dash/learn/redis. The results of a
// hazard are in one file.
func fileOf(page string) string {
	names, fenced := strings.CutSuffix(strings.Trim(strings.TrimPrefix(page, "/dash"), "/"), "?fenced=true")
	menu, rest, _ := strings.Cut(names, "/")
	name, anchor, _ := strings.Cut(rest, "/")
	file := path.Join(menu, cmp.Or(name, "index")+".html")
	if fenced {
		anchor += "-fenced"
	}
	if anchor != "" {
		file += "#" + anchor
	}
	return file
}

// siteWriter writes the files of a site.
type siteWriter struct {
	Site
	folder  string
	cards   []card
	results map[resultKey]*storedResult
	pages   map[string]*template.Template
}

// Write writes the site into a folder: English pages, and Chinese ones into its folder zh.
func (s Site) Write(folder string) error {
	w := siteWriter{Site: s, folder: folder, results: map[resultKey]*storedResult{}, pages: map[string]*template.Template{}}
	for _, name := range []string{"home", "strategies", "strategy", "primitives", "break", "hazard", "steps", "step", "course", "lesson"} {
		w.pages[name] = parseSite(name)
	}
	for _, strategy := range s.Strategies {
		w.cards = append(w.cards, card{experiment.Card{Card: strategy.Card}, strategy.Code})
	}
	for _, r := range s.Runs {
		if c, err := findCard(w.cards, r.Strategy, 0); err == nil {
			r.Recording = w.cards[c].Leased(r.Recording)
		}
		w.results[resultKey{r.Hazard, r.Strategy, r.Fenced}] = &storedResult{Result: r}
	}
	return errors.Join(w.assets(), w.learn(), w.matrix(), w.steps(), w.course(),
		w.page("index.html", "home", "home", bilingual("locks that break", "会出错的锁"), same(len(w.Strategies))))
}

// parseSite parses a page of the lab, and then the parts of it that are different in a site.
func parseSite(name string) *template.Template {
	live := map[string]string{"step": "step", "strategies": "strategies", "strategy": "strategy", "break": "break", "primitives": "primitive", "course": "course", "lesson": "lesson"}[name]
	live = cmp.Or(live, "problem") // for the pages that only a site has
	t := template.Must(parse(live).ParseFS(siteFiles, "site/layout.html.tmpl"))
	file := "site/" + name + ".html.tmpl"
	if _, err := siteFiles.Open(file); err == nil {
		t = template.Must(t.ParseFS(siteFiles, file))
	}
	toFile := func(lesson string) string { return lesson + ".html" } // in the same folder
	return t.Funcs(template.FuncMap{
		"markdown": func(text string) (template.HTML, error) { return course.HTML(text, toFile) },
	})
}

func (w *siteWriter) assets() error {
	css, err := staticFiles.ReadFile("static/dash.css")
	js, errJS := siteFiles.ReadFile("site/step.js")
	return errors.Join(err, errJS, w.file("static/dash.css", css), w.file("static/step.js", js), w.file("static/timeline.css", []byte(timeline.Style())))
}

func (w *siteWriter) file(name string, text []byte) error {
	name = filepath.Join(w.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // pages that everybody may read
		return fmt.Errorf("write the site: %w", err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // see above
		return fmt.Errorf("write the site: %w", err)
	}
	return nil
}

// page writes a page in both languages. file is its path from the folder of the language.
func (w *siteWriter) page(file, name, menu string, title api.Text, data func(lang string) (any, error)) error {
	for _, lang := range []string{"en", "zh"} {
		content, err := data(lang)
		if err != nil {
			return err
		}
		v := view{Lang: lang, Page: menu, Title: title, Data: content, place: &place{file, lang}}
		var text bytes.Buffer
		if err := w.pages[name].ExecuteTemplate(&text, "layout", v); err != nil {
			return fmt.Errorf("write the site: %s: %w", file, err)
		}
		folder := map[string]string{"zh": "zh"}[lang]
		if err := w.file(path.Join(folder, file), text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func same(data any) func(string) (any, error) { return func(string) (any, error) { return data, nil } }

func (w *siteWriter) learn() error {
	err := w.page("learn/index.html", "strategies", "strategies", bilingual("Learn", "学习"), same(learnView{groupsOf(w.cards), w.Primitives}))
	var primitives []primitiveView
	for _, p := range w.Primitives {
		files := codeFiles(p.Code)
		primitives = append(primitives, primitiveView{p, files[:ownFiles(files)]})
	}
	err = errors.Join(err, w.page("learn/primitives.html", "primitives", "strategies", bilingual("Primitives", "同步原语"), same(primitives)))
	for _, c := range w.cards {
		x := newStrategyView(c, w.cards)
		own := ownFiles(x.Files)
		for _, f := range x.Files[own:] {
			x.Others = append(x.Others, f.Name)
		}
		x.Files = x.Files[:own]
		for i, claim := range x.Claims {
			x.Claims[i].Run = w.results[claim.resultKey]
		}
		err = errors.Join(err, w.page(fileOf("/dash/learn/"+c.ID), "strategy", "strategies", verbatim(c.ID), same(x)))
	}
	return err
}

// ownFiles returns the number of the strategy's own files: the first one, and its scripts. Many
// strategies share the others, and copies of these would be a tenth of the site.
func ownFiles(files []codeFile) int {
	n := min(1, len(files))
	for n < len(files) && path.Ext(files[n].Name) != ".go" {
		n++
	}
	return n
}

// matrix writes the table, and a page with timelines for each hazard.
func (w *siteWriter) matrix() (err error) {
	m, rows := matrixView{}, []matrixRow{}
	pages := map[string]*hazardPage{}
	for _, h := range hazards() {
		if slices.Contains(w.Matrix.Hazards, h.ID) {
			m.Hazards = append(m.Hazards, h)
			pages[h.ID] = &hazardPage{hazard: h}
		}
	}
	for _, r := range w.Matrix.Rows {
		if _, err := findCard(w.cards, r.Strategy, 0); err != nil {
			continue // the strategy was removed after the recording
		}
		row := matrixRow{resultKey: resultKey{Strategy: r.Strategy, Fenced: r.Fenced}}
		for _, h := range m.Hazards {
			q := resultKey{h.ID, r.Strategy, r.Fenced}
			s, applies := r.Summaries[h.ID]
			x := resultView{resultKey: q, AppliesTo: applies, Applies: applies, Claim: s.Claim, Basic: h.Basic}
			if applies {
				x.Run = w.resultOf(q, s)
				m.Tally.count(x.Run.Result)
				pages[h.ID].Results = append(pages[h.ID].Results, hazardResult{resultView: x, Summary: s})
			}
			row.Results = append(row.Results, x)
		}
		rows = append(rows, row)
	}
	m.Families = inFamilies(w.cards, rows)
	for _, h := range m.Hazards {
		err = errors.Join(err, w.page(fileOf("/dash/break/"+h.ID), "hazard", "break", verbatim(h.ID), pages[h.ID].draw))
	}
	return errors.Join(err, w.page("break/index.html", "break", "break", bilingual("Fault matrix", "故障矩阵"), same(struct {
		Filter    matrixFilter
		Matrix    matrixView
		About     matrix.About
		Databases []matrix.Column
	}{matrixFilter{Rows: "basic", Columns: "basic"}, m, w.About, w.Databases.Columns(w.Matrix)})))
}

// hazardPage has the results of one hazard on all strategies.
type hazardPage struct {
	hazard
	Legend  template.HTML
	Results []hazardResult
}

type hazardResult struct {
	resultView
	Summary matrix.Summary
	Anchor  string
	Shown   matrix.Run
}

func (p *hazardPage) draw(lang string) (_ any, err error) {
	for i := range p.Results {
		r := &p.Results[i]
		_, r.Anchor, _ = strings.Cut(fileOf(r.Path()), "#")
		if r.Shown, err = matrix.RunOf(r.Run.Result, lang, r.Anchor); err != nil {
			return nil, fmt.Errorf("write the site: %w", err)
		}
		if r.Shown.Picture == "" {
			continue
		}
		// A legend in each picture, and a table of what the picture shows, would be a third of the site.
		r.Shown.Tables = r.Shown.Tables[:len(r.Shown.Tables)-1]
		if r.Shown.Picture, err = r.Shown.Timeline.WithoutLegend().Inline(r.Anchor + ".picture"); err != nil {
			return nil, fmt.Errorf("write the site: %w", err)
		}
	}
	p.Legend, err = timeline.Legend(lang)
	return p, err
}

// resultOf returns the recorded run with the verdict of the summary, or only the verdict.
func (w *siteWriter) resultOf(q resultKey, s matrix.Summary) *storedResult {
	if run := w.results[q]; run != nil && run.Verdict == s.Verdict {
		return run
	}
	return &storedResult{Result: experiment.Result{
		Hazard: q.Hazard, Strategy: q.Strategy, Fenced: q.Fenced, Claim: s.Claim, Verdict: s.Verdict, Why: s.Why,
	}}
}

func (w *siteWriter) steps() error {
	err := w.page("step/index.html", "steps", "step", bilingual("Step", "单步"), same(groupsOf(w.cards)))
	for i, s := range w.Strategies {
		if len(s.Steps.Nodes) == 0 {
			return fmt.Errorf("write the site: the steps of %s are not recorded: run `make steps strategy=%s`", s.ID, s.ID)
		}
		files := codeFiles(w.cards[i].Code)
		shortest, _ := s.Steps.Shortest()
		recorded, errJSON := json.Marshal(struct {
			stepper.Graph
			Shortest int               `json:"shortest"` // 0 if no order loses an update
			Solution *stepper.Solution `json:"solution"`
			Left     []*stepper.Orders `json:"left"` // by the node
			Code     []api.File        `json:"code"`
			Marks    map[string]string `json:"marks"` // the line of the code that runs after a step
		}{s.Steps, shortest, s.Steps.Solution(), s.Steps.Left(), s.Code, marks(files, s.Steps)})
		err = errors.Join(
			err, errJSON,
			w.file("static/steps/"+s.ID+".js", fmt.Appendf(nil, "const recorded = %s;\n", recorded)),
			w.page(fileOf("/dash/step/"+s.ID), "step", "step", api.Textf("Step: %s", "单步：%s", s.ID), same(w.cards[i])),
		)
	}
	return err
}

// marks returns file and line of each step, like the ids of the lines in a listing.
func marks(files []codeFile, g stepper.Graph) map[string]string {
	found := map[string]string{}
	for _, l := range g.Lines {
		if l.Step == "" {
			continue
		}
		if file, line, ok := lineOf(files, l.Step); ok {
			found[l.Step] = fmt.Sprintf("%d-%d", file, line)
		}
	}
	return found
}

// course writes the lessons with their recorded results.
func (w *siteWriter) course() error {
	lessons, err := lessonsByLanguage()
	if err != nil {
		return err
	}
	err = w.page("course/index.html", "course", "course", bilingual("The course", "课程"), func(lang string) (any, error) { return lessons[lang], nil })
	for i, l := range lessons["en"] {
		err = errors.Join(err, w.page(fileOf("/dash/course/"+l.Name), "lesson", "course", bilingual(l.Title, lessons["zh"][i].Title), func(lang string) (any, error) {
			return lessons[lang][i], nil
		}))
	}
	return err
}
