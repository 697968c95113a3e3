package dash

import (
	"bytes"
	"cmp"
	"context"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/docs"
	"oversell/lab/course"
)

// coursePage shows the lessons of docs/course, and runs their commands in the lab.
type coursePage struct {
	s       *Server
	lessons map[string][]course.Lesson // by language: the same lessons in the same order
	// The hub's mutex protects the state: see hub.Send.
	questions map[string][]*questionState // by lesson
	results   map[string]*course.Results  // of all runs, by lesson; only the running job uses them
}

// questionState is a question of a lesson with its last run, which all open pages show.
type questionState struct {
	ID    string // of the part of the page
	Index int
	Of    api.Text // the lesson, for the form
	In    map[string]course.Question
	Quiz  bool
	progress
	Output   string    // what the commands have printed
	Exhibits []exhibit // of the last run
	Sales    []sale
	System   api.Text          // the picture of the system, as HTML
	Chosen   int               // the option that the class has predicted, from 1; 0 means none
	Right    int               // the option that was right in the last run; 0 before it
	Lang     string            // of the output
	whys     map[string]string // by language: the explanation with the figures of the last run
	Votes    classVotes        // of the phones, which the result reveals
	// MissingServers means that a command needs a lab of its own, and this machine lacks the servers.
	MissingServers bool
}

// Question returns the question in the language of the page.
func (t *questionState) Question(lang string) course.Question { return t.In[lang] }

// Why returns the explanation. Its figures are those of the last run.
func (t *questionState) Why(lang string) string { return t.whys[lang] }

// Done reports whether the commands have run to their end.
func (t *questionState) Done() bool { return t.Begun && !t.Running && !t.Stopped && t.Error == nil }

const maxOutput = 40_000 // bytes of what a question's commands print

func newCoursePage(s *Server) *coursePage {
	p := &coursePage{s: s, lessons: map[string][]course.Lesson{}, questions: map[string][]*questionState{}, results: map[string]*course.Results{}}
	for _, lang := range course.Languages() {
		all, err := course.Lessons(docs.Course, lang)
		if err != nil {
			panic(err) // a test reads the embedded lessons
		}
		p.lessons[lang] = all
	}
	for i, l := range p.lessons["en"] {
		p.questions[l.Name] = p.questionsOf(i)
		s.hub.Open("course-"+l.Name, func() []hub.Message { return p.all(l.Name) })
		path := "/dash/course/" + l.Name
		s.page(path, "lesson", func(r *http.Request) (view, error) { return p.lesson(r, i), nil })
		s.routes.HandleFunc("POST "+path+"/run", s.withToken(func(ctx context.Context, req *http.Request) error { return p.run(ctx, req, i) }))
		s.routes.HandleFunc("POST "+path+"/ask", s.withToken(func(_ context.Context, req *http.Request) error { return p.ask(req, l.Name) }))
	}
	s.hub.Open("course", func() []hub.Message { return nil })
	s.page("/dash/course", "course", func(r *http.Request) (view, error) {
		return view{Title: bilingual("Course", "课程"), Data: p.lessons[language(r)]}, nil
	})
	return p
}

func (p *coursePage) questionsOf(lesson int) (all []*questionState) {
	en, zh := p.lessons["en"][lesson], p.lessons["zh"][lesson].Questions()
	for _, part := range en.Parts {
		for _, question := range part.Questions {
			n := len(all)
			all = append(all, &questionState{
				ID: "question-" + strconv.Itoa(n), Index: n, Of: api.Verbatim(en.Name), Quiz: part.Kind == course.Quiz,
				In:             map[string]course.Question{"en": question, "zh": zh[n]},
				MissingServers: p.s.Binary == "" && slices.ContainsFunc(question.Commands, course.Command.NeedsServers),
			})
			if p.s.Service != nil {
				all[n].Exhibits = p.exhibits(all[n], course.NewResults())
			}
		}
	}
	return all
}

// all returns the messages that draw all questions of a lesson. The hub's mutex must be locked.
func (p *coursePage) all(lesson string) (all []hub.Message) {
	for _, t := range p.questions[lesson] {
		all = append(all, p.draw(t))
	}
	return append(all, p.s.part("lesson", "tally", p.s.votes.count("course-"+lesson)))
}

// ask lets the class vote on a question of a lesson.
func (p *coursePage) ask(req *http.Request, name string) error {
	n, err := strconv.Atoi(req.Form.Get("question"))
	if err != nil || n < 0 || n >= len(p.questions[name]) || len(p.questions[name][n].In["en"].Options) == 0 {
		return badRequest("question must be the number of a question of this lesson that has answers.", "question 必须是这一课中有选项的实验的编号。")
	}
	in := p.questions[name][n].In
	q := question{Topic: "course-" + name, Question: n, Ask: bilingual(in["en"].Ask, in["zh"].Ask)}
	for i, option := range in["en"].Options {
		q.Options = append(q.Options, bilingual(option.Text, in["zh"].Options[i].Text))
	}
	p.s.votes.ask(q)
	return nil
}

// ClassRight reports whether most phones chose the option that was right. Without votes, the prediction on the page counts.
func (t *questionState) ClassRight() bool {
	if t.Votes.Voters > 0 {
		return 2*t.Votes.Agreed() > t.Votes.Voters
	}
	return t.Right == t.Chosen
}

func (p *coursePage) draw(t *questionState) hub.Message {
	if len(t.Exhibits)+len(t.Sales) == 0 { // before a result
		t.System = p.system(t, nil)
	}
	return hub.Replace(p.s.render("lesson", "question", t.ID, t))
}

// lessonPart is a part of a lesson on its page. First is the index of its first question.
type lessonPart struct {
	course.Part
	First int
}

// lesson returns the page of the lesson with this index.
func (p *coursePage) lesson(r *http.Request, i int) view {
	_, _ = p.s.catalogue.all(r.Context()) // without a lab, the pictures lack the locks
	lang := language(r)
	l := p.lessons[lang][i]
	data := struct {
		course.Lesson
		Sections []lessonPart
		Next     *course.Lesson
	}{Lesson: l}
	first := 0
	for _, part := range l.Parts {
		data.Sections = append(data.Sections, lessonPart{part, first})
		first += len(part.Questions)
	}
	if i+1 < len(p.lessons[lang]) {
		data.Next = &p.lessons[lang][i+1]
	}
	return view{Page: "course", Topic: "course-" + l.Name, Title: api.Verbatim(l.Title), Data: data}
}

// chosen returns the question that the form names, and the number of the chosen option.
func (p *coursePage) chosen(lesson string, form url.Values) (t *questionState, option int, err error) {
	n, err := strconv.Atoi(form.Get("question"))
	if err != nil || n < 0 || n >= len(p.questions[lesson]) {
		return nil, 0, badRequest("question must be the number of a question of this lesson.", "question 必须是这一课的一个实验的编号。")
	}
	t = p.questions[lesson][n]
	if t.MissingServers {
		return nil, 0, reject(http.StatusConflict, "These commands start servers of their own, and this page's machine has none. Run them on a machine with the servers.",
			"这些命令要启动自己的服务器，而本页所在的机器上没有。请在装有这些服务器的机器上运行。")
	}
	options := len(t.In["en"].Options)
	option, err = strconv.Atoi(cmp.Or(form.Get("choice"), "0"))
	switch {
	case err != nil || option < 0 || option > options:
		return nil, 0, badRequest("choice must be 1 to %d.", "choice 必须是 1 到 %d。", options)
	case options > 0 && option == 0:
		return nil, 0, badRequest("Predict first: choose an answer.", "请先预测：选择一个答案。")
	}
	return t, option, nil
}

func (p *coursePage) run(ctx context.Context, req *http.Request, i int) error {
	name, lang := p.lessons["en"][i].Name, language(req)
	t, option, err := p.chosen(name, req.Form)
	if err != nil {
		return err
	}
	cards, err := course.ReadCards(ctx, p.s.catalogue.nginx)
	if err != nil {
		return err
	}
	change := func(change func()) {
		p.s.hub.Send("course-"+name, func() []hub.Message { change(); return []hub.Message{p.draw(t)} })
	}
	title := bilingual(p.lessons["en"][i].Title, p.lessons["zh"][i].Title)
	first := api.Verbatim(t.In["en"].Commands[0].Text)
	return p.s.jobs.follow(ctx, sender(req), title, first, &t.progress, change, func(ctx context.Context) error {
		change(func() {
			t.Output, t.Chosen, t.Right, t.Exhibits, t.Sales, t.Lang, t.whys, t.Votes = "", option, 0, nil, nil, lang, nil, classVotes{}
		})
		return p.work(ctx, t, lang, cards, change)
	})
}

// work runs the commands of the question on a full stock, and finds the option that is right.
func (p *coursePage) work(ctx context.Context, t *questionState, lang string, cards course.Cards, change func(func())) error {
	if err := p.s.catalogue.nginx.Call(ctx, http.MethodPut, "/stock/1?"+url.Values{"count": {"5000"}}.Encode(), nil, nil); err != nil {
		return err
	}
	output := &bytes.Buffer{}
	runner := p.s.runner(lang, output)
	runner.Begin = func(c course.Command) { change(func() { t.What = api.Verbatim(c.Text) }) }
	results, err := runner.Run(ctx, t.In["en"].Commands)
	change(func() { t.Output = course.Short(string(output.Next(maxOutput))) })
	if err != nil {
		return err
	}
	right, err := results.Right(t.In[lang].Options, cards)
	votes := classVotes{}
	if right > 0 { // else the vote stays open for another run
		votes = p.s.votes.reveal("course-"+t.Of.EN, t.Index, right)
	}
	whys := p.explain(t, results, cards)
	exhibits, system := p.exhibits(t, results), p.system(t, results.Runs)
	change(func() {
		t.Right, t.Exhibits, t.Sales, t.System, t.whys, t.Votes = right, exhibits, sales(results.Runs), system, whys, votes
	})
	return err
}

// explain returns the explanation of a question with the figures of its run. A figure of a question that has not
// run here stays that of the recorded run.
func (p *coursePage) explain(t *questionState, results *course.Results, cards course.Cards) map[string]string {
	all := p.results[t.Of.EN]
	if all == nil {
		all = course.NewResults()
		p.results[t.Of.EN] = all
	}
	all.Merge(results)
	whys := map[string]string{}
	for lang, question := range t.In {
		whys[lang], _ = all.Figures(question.Why, cards)
	}
	return whys
}

// runner returns a Runner whose commands print in the language lang.
func (s *Server) runner(lang string, output io.Writer) course.Runner {
	return course.Runner{
		Program: cmp.Or(s.Program, s.Binary), Target: s.Lab.Target, Replicas: s.Lab.Replicas, Token: s.Lab.Token,
		Lang: lang, Quick: s.QuickLessons, Output: output, Progress: output,
	}
}

// markdown returns a text of a lesson as HTML.
func markdown(text string) (template.HTML, error) {
	return course.HTML(text, func(lesson string) string { return "/dash/course/" + lesson })
}

// inline returns a line of a lesson as HTML without a paragraph around it.
func inline(text string) (template.HTML, error) {
	html, err := markdown(text)
	return template.HTML(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(html)), "<p>"), "</p>")), err //nolint:gosec // see markdown
}
