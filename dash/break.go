package dash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/docs"
	"oversell/lab/chaos"
	"oversell/lab/experiment"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/view/matrix"
)

// breaks is the page of the experiments, and keeps the newest result of each hazard and strategy.
type breaks struct {
	s *Server
	// The hub's mutex protects the fields below: see hub.Send.
	now   breakState
	runs  map[resultKey]*storedResult
	made  chaos.Plan // the latest plan that a visitor has made up, whose results runs has; or nil
	count int        // of the changes and results; the pages compare it with the count when they were drawn

	recorded   map[resultKey]matrix.Summary // of docs/matrix.json, never written
	about      matrix.About                 // of the recorded runs
	recordings func() map[resultKey]experiment.Result
}

type resultKey struct {
	Hazard   api.Hazard
	Strategy string
	Fenced   bool
}

func (q resultKey) suffix(fenced string) string {
	if q.Fenced {
		return fenced
	}
	return ""
}

// Path returns the address of the page that asks for the verdict, and then shows it.
func (q resultKey) Path() string {
	return "/dash/break/" + string(q.Hazard) + "/" + q.Strategy + q.suffix("?fenced=true")
}

// Shown returns the address of the page that shows the verdict at once.
func (q resultKey) Shown() string {
	return "/dash/break/" + string(q.Hazard) + "/" + q.Strategy + "?answer=show" + q.suffix("&fenced=true")
}

// Name returns the strategy's id, with --fenced if the experiment uses the fencing token.
func (q resultKey) Name() string { return q.Strategy + q.suffix(" --fenced") }

// ID returns the id of the HTML element that shows the result.
func (q resultKey) ID() string { return string(q.Hazard) + "." + q.Strategy + q.suffix(".fenced") }

type storedResult struct {
	experiment.Result
	ID        int  // higher than the ID of every older result
	Forgotten bool // the recording was dropped to save memory
}

// Path returns the address of the page that shows the result, without the question.
func (r *storedResult) Path() string { return resultKey{r.Hazard, r.Strategy, r.Fenced}.Shown() }

// breakState describes the plan (hazards and strategies) that runs now, or the last plan.
type breakState struct {
	progress
	Unable   bool                 // this machine cannot run experiments
	Hazard   api.Hazard           // the hazard of the running or starting experiment, or empty
	Starting bool                 // the lab of the experiments starts
	Last     *storedResult        // the newest result of the plan
	Results  int                  // number of results of the plan
	includes func(resultKey) bool // reports whether the plan includes the result
}

// maxSteps limits the steps in all recordings together, which then need about 100 MB. Above
// this limit, the oldest recordings are deleted, but their verdicts stay.
const maxSteps = 400_000

func newBreaks(s *Server) *breaks {
	// A result's page may stay open while the lab restarts. The page loads a run only if the run
	// has a new number. So the numbers of this lab start above those of all earlier labs.
	b := &breaks{s: s, runs: map[resultKey]*storedResult{}, count: int(time.Now().UnixMilli())}
	b.recorded, b.about = recordedVerdicts()
	b.recordings = sync.OnceValue(recordedRuns)
	b.now.Unable = s.Binary == ""
	s.hub.Open("break", b.all)
	s.hub.Open("result", b.resultMessages)
	s.pageWithGroups("/dash/break", "break", bilingual("Break", "破坏"), b.page)
	s.page("/dash/break/{hazard}/{strategy}", "result", b.resultPage)
	s.routes.HandleFunc("POST /dash/break/start", s.withToken(b.start))
	return b
}

// breakPage has the content of the page.
type breakPage struct {
	Hazards  []experiment.Experiment
	Groups   []group
	Recorded matrix.About
	Matrix   matrixView
	Now      breakState
}

func (b *breaks) page(r *http.Request, groups []group) any {
	p := breakPage{Hazards: experiment.WithRandomPlans(), Groups: groups, Recorded: b.about}
	b.s.hub.Do(func() { p.Matrix, p.Now = b.matrix(filterOf(r)), b.now })
	return p
}

func recordedVerdicts() (map[resultKey]matrix.Summary, matrix.About) {
	var m matrix.Recorded
	if err := json.Unmarshal(docs.Matrix, &m); err != nil {
		panic(err) // a test reads the embedded files
	}
	verdicts := map[resultKey]matrix.Summary{}
	for _, row := range m.Rows {
		for hazard, s := range row.Summaries {
			verdicts[resultKey{hazard, row.Strategy, row.Fenced}] = s
		}
	}
	return verdicts, m.About
}

// recordedRuns returns the runs of docs/recorded, with their recordings.
func recordedRuns() map[resultKey]experiment.Result {
	runs, err := experiment.RecordedRuns(docs.Runs)
	if err != nil {
		panic(err) // a test reads the embedded runs
	}
	byKey := map[resultKey]experiment.Result{}
	for _, r := range runs {
		byKey[resultKey{r.Hazard, r.Strategy, r.Fenced}] = r
	}
	return byKey
}

// all returns the state, and the count, by which a page notices that its matrix is out of date. The
// hub's mutex must be locked.
func (b *breaks) all() []hub.Message {
	return []hub.Message{b.s.part("break", "now", b.now), hub.NewMessage("count", b.count)}
}

// resultMessages returns the number of each result's newest run. The hub's mutex must be locked.
func (b *breaks) resultMessages() []hub.Message {
	newest := map[string]int{}
	for q, run := range b.runs {
		newest[q.ID()] = run.ID
	}
	return []hub.Message{b.s.part("break", "now", b.now), hub.NewMessage("newest", newest)}
}

// plan reads the form. No hazard in the form means all hazards, and no strategy all strategies.
func (b *breaks) plan(ctx context.Context, req *http.Request) (p experiment.Selection, err error) {
	if b.s.Binary == "" {
		return p, reject(http.StatusConflict,
			"This page cannot run experiments: they kill and freeze servers. Start a lab with oversell lab, on a machine where the servers are installed.",
			"本页不能做破坏实验：实验会杀死和冻结服务器。请在装有这些服务器的机器上运行 oversell lab。")
	}
	p = experiment.Selection{Hazards: named[api.Hazard](req, "hazard"), Strategies: req.Form["strategy"], Fenced: req.Form.Get("fenced") == "true", Seed: 1, Seeds: 1}
	known, err := b.s.catalogue.all(ctx)
	if err != nil {
		return p, err
	}
	if plan := strings.TrimSpace(req.Form.Get("plan")); plan != "" {
		if p.Moves, err = chaos.Parse(plan); err != nil {
			return p, badRequest("%v", "计划写错了：%v", err)
		}
		if p.Hazards = nil; len(p.Strategies) == 0 {
			return p, badRequest("Choose one or more strategies for the plan.", "请为计划选择至少一个策略。")
		}
	}
	if err := p.Validate(known); err != nil {
		return p, badRequest("%v", "没有这种故障、步骤或策略，或者这种故障影响不到所选的策略（选了栅栏号时，策略必须有栅栏号）：%v", err)
	}
	return p, nil
}

// named returns the values of a field. The empty one stands for all, as does no value.
func named[T ~string](req *http.Request, field string) (all []T) {
	for _, value := range req.Form[field] {
		if value != "" {
			all = append(all, T(value))
		}
	}
	return all
}

func inPlan(p experiment.Selection, q resultKey) bool {
	return (len(p.Moves) > 0) == (q.Hazard == experiment.Made) && (len(p.Hazards) == 0 || slices.Contains(p.Hazards, q.Hazard)) &&
		(len(p.Strategies) == 0 || slices.Contains(p.Strategies, q.Strategy)) &&
		(q.Fenced == p.Fenced || q.Fenced && len(p.Strategies) == 0)
}

func (b *breaks) start(ctx context.Context, req *http.Request) error {
	p, err := b.plan(ctx, req)
	if err != nil {
		return err
	}
	what := cmp.Or(api.JoinHazards(p.Hazards, ", "), p.Moves.String(), "all hazards")
	if n := len(p.Strategies); n > 0 { // more than four names would make the line too long
		what += fmt.Sprintf(", %d: %s", n, strings.Join(p.Strategies[:min(n, 4)], ", "))
	}
	first := bilingual("starting a separate lab, because servers will be killed and frozen; this takes half a minute", "正在启动一个单独的实验室，因为要杀死和冻结服务器；大约需要半分钟")
	return b.s.jobs.follow(ctx, sender(req), api.Textf("break %s", "破坏 %s", what), first, &b.now.progress, b.change, func(ctx context.Context) error {
		b.change(func() {
			b.now.includes = func(q resultKey) bool { return inPlan(p, q) }
			b.now.Starting, b.now.Last, b.now.Results = true, nil, 0
			if len(p.Hazards) > 0 { // the results of the first hazard say that they start
				b.now.Hazard = p.Hazards[0]
			}
			if len(p.Moves) > 0 {
				b.now.Hazard = experiment.Made
				if p.Moves.String() != b.made.String() { // the column has the results of one plan
					b.made = p.Moves
					maps.DeleteFunc(b.runs, func(q resultKey, _ *storedResult) bool { return q.Hazard == experiment.Made })
				}
			}
		})
		err := b.inSeparateLab(ctx, p)
		b.change(func() { b.now.Hazard, b.now.Starting = "", false })
		return err
	})
}

// inSeparateLab runs the plan in a separate lab, so that the page's own lab keeps running.
func (b *breaks) inSeparateLab(ctx context.Context, p experiment.Selection) (err error) {
	cfg := player.Config(b.s.Binary, b.s.Lab.Token)
	cfg.OnExit = b.s.OnExit
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		b.change(func() {
			b.now.What = bilingual("stopping the lab of this experiment", "正在关闭本次实验的实验室")
		})
		err = errors.Join(err, lab.Close())
	}()
	bed, err := player.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	store, err := experiment.OpenStore("")
	if err != nil {
		return err
	}
	return experiment.Perform(ctx, bed, p, store, breakWatch{b})
}

// change sends the results of the previous and the present hazard. A page ignores those that it does not show.
func (b *breaks) change(change func()) {
	b.s.hub.Send("break", func() []hub.Message {
		before, made := b.now.Hazard, b.made.String()
		change()
		b.count++
		messages := []hub.Message{b.s.part("break", "now", b.now), hub.NewMessage("parts", b.column(before, b.now.Hazard))}
		if b.made.String() != made { // its column is new: the pages load the matrix again
			messages = append(messages, hub.NewMessage("count", b.count))
		}
		return messages
	})
	b.s.hub.Send("result", b.resultMessages)
}

type breakWatch struct{ b *breaks }

func (w breakWatch) Begin(e experiment.Experiment, subjects, nth, of int) {
	w.b.change(func() {
		w.b.now.Hazard, w.b.now.Starting = e.Hazard, false
		w.b.now.What = running(e, subjects, nth, of)
	})
}

// running describes the experiment that runs.
func running(e experiment.Experiment, subjects, nth, of int) api.Text {
	return api.Textf("%[1]d of %[2]d, %[3]s on %[4]d: %[5]s", "第 %[1]d/%[2]d 个，%[3]s，%[4]d 个策略：%[6]s",
		nth, of, e.Hazard, subjects, e.Title.EN, e.Title.ZH)
}

func (w breakWatch) End(_ experiment.Experiment, results []experiment.Result, _ time.Duration) {
	w.b.change(func() {
		for _, r := range results {
			w.b.keep(r)
			w.b.now.Last = w.b.runs[resultKey{r.Hazard, r.Strategy, r.Fenced}]
			w.b.now.Results++
		}
		w.b.makeRoom()
		w.b.now.Hazard = ""
	})
}

func (w breakWatch) LeftOut(e experiment.Experiment, why error) {
	w.b.change(func() {
		w.b.now.Hazard, w.b.now.What = "", api.Textf("%s was left out: %v", "跳过 %s：%v", e.Hazard, why)
	})
}

// keep replaces the older result with the same key. The hub's mutex must be locked.
func (b *breaks) keep(r experiment.Result) {
	b.count++
	b.runs[resultKey{r.Hazard, r.Strategy, r.Fenced}] = &storedResult{Result: r, ID: b.count}
}

// makeRoom deletes the oldest recordings beyond maxSteps. The hub's mutex must be locked.
func (b *breaks) makeRoom() {
	newest := slices.SortedFunc(maps.Keys(b.runs), func(x, y resultKey) int { return b.runs[y].ID - b.runs[x].ID })
	steps := 0
	for _, q := range newest {
		run := b.runs[q]
		steps += len(run.Recording.Ops) + len(run.Recording.Events)
		if steps > maxSteps {
			// The result is replaced, not changed, because a page may be drawing its recording.
			r := run.Result
			r.Recording.Ops, r.Recording.Events, r.Recording.Spans = nil, nil, nil
			b.runs[q] = &storedResult{Result: r, ID: run.ID, Forgotten: true}
		}
	}
}
