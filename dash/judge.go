package dash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/lab/rig"
	"oversell/trial"
	"oversell/trial/lockstest"
	"oversell/trial/process"
)

// judgePage puts a lock of the class on trial, and shows each verdict when it is there.
type judgePage struct {
	s *Server
	// The hub's mutex protects the fields below: see hub.Send.
	now    trialOfLock
	report []byte // the page with the timelines of the last trial
}

// trialOfLock is the running trial, or the last one.
type trialOfLock struct {
	progress
	Command  string
	Lines    []trial.Line
	Reported bool // there is a page with timelines
}

const maxCommand = 2000 // characters

func newJudgePage(s *Server) *judgePage {
	p := &judgePage{s: s}
	s.hub.Open("judge", func() []hub.Message { return []hub.Message{p.draw()} })
	s.page("/dash/judge", "judge", func(*http.Request) (view, error) {
		data := struct {
			Unable  bool
			Hazards []experiment.Experiment
		}{s.Binary == "", slices.DeleteFunc(experiment.All(), func(e experiment.Experiment) bool { return e.Lab != nil })} // not those of the database alone
		return view{Page: "break", Topic: "judge", Title: bilingual("A lock of your own", "你自己的锁"), Data: data}, nil
	})
	s.routes.HandleFunc("GET /dash/judge/report", p.showReport)
	s.routes.HandleFunc("POST /dash/judge/start", s.withToken(p.start))
	return p
}

func (p *judgePage) draw() hub.Message { return p.s.part("judge", "verdicts", p.now) }

func (p *judgePage) change(change func()) {
	p.s.hub.Send("judge", func() []hub.Message { change(); return []hub.Message{p.draw()} })
}

func (p *judgePage) start(ctx context.Context, req *http.Request) error {
	command, lang, selected := strings.TrimSpace(req.Form.Get("command")), language(req), named[api.Hazard](req, "hazard")
	unknown := trial.KnownHazards(selected)
	switch {
	case p.s.Binary == "":
		return reject(http.StatusConflict, "This page cannot run experiments: they kill and freeze servers. Start a lab with oversell lab, on a machine where the servers are installed.",
			"本页不能做破坏实验：实验会杀死和冻结服务器。请在装有这些服务器的机器上运行 oversell lab。")
	case command == "" || len(command) > maxCommand || strings.ContainsAny(command, "\x00\n\r"):
		return badRequest("command must be one line of the shell, of at most %d characters.", "command 必须是一行 shell 命令，最多 %d 个字符。", maxCommand)
	case unknown != nil:
		return badRequest("%v", "没有这种故障：%v", unknown)
	}
	first := bilingual("starting the lock, and a separate lab for it; this takes half a minute", "正在启动这把锁和单独的实验室；大约需要半分钟")
	return p.s.jobs.follow(ctx, sender(req), api.Textf("judge %s", "检验 %s", command), first, &p.now.progress, p.change, func(ctx context.Context) error {
		p.change(func() { p.now.Command, p.now.Lines, p.now.Reported = command, nil, false })
		return p.judge(ctx, command, selected, lang)
	})
}

// judge runs a trial in a separate lab, as oversell judge does.
func (p *judgePage) judge(ctx context.Context, command string, selected []api.Hazard, lang string) (err error) {
	j := trial.Judge{Seed: 1, Seeds: 1, Command: "oversell judge -- " + process.Quoted(command)}
	if j.Lock, err = trial.Greet(ctx, command); err == nil {
		err = j.Select(selected)
	}
	if err != nil {
		return badRequest("judge: %v", "judge：%v", err)
	}
	j.Lock.Program = p.s.Binary
	cfg := rig.Config{Binary: p.s.Binary, Token: p.s.Lab.Token}
	j.Lock.HazardLab(&cfg)
	cfg.OnExit = p.s.OnExit
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return err
	}
	var v trial.Report
	store, err := j.OpenStore("")
	if err == nil {
		v, err = j.Try(ctx, lab, store, judgeWatch{p, lang})
	}
	if err := errors.Join(err, lab.Close()); err != nil {
		return err
	}
	for _, line := range append(v.Repetitions(), v.String(), v.LoadSentence()) {
		p.add(trial.Line{Text: line})
	}
	if len(v.Rows) == 0 {
		return nil // a lock that fails a basic check has no timelines
	}
	var page bytes.Buffer
	if err := v.WritePage(&page, lang); err != nil {
		return err
	}
	p.change(func() { p.report, p.now.Reported = page.Bytes(), true })
	return nil
}

// judgeWatch shows each verdict of a trial in the language of the page that started it.
type judgeWatch struct {
	p    *judgePage
	lang string
}

func (w judgeWatch) Part(title string) { w.p.add(trial.Line{Text: title}) }

func (w judgeWatch) Checked(o lockstest.CheckResult) { w.p.add(trial.CheckLine(o)) }

func (w judgeWatch) Loaded([]measure.Result) {}

func (w judgeWatch) Begin(e experiment.Experiment, subjects, nth, of int) {
	w.p.change(func() { w.p.now.What = running(e, subjects, nth, of) })
}

func (w judgeWatch) End(_ experiment.Experiment, results []experiment.Result, _ time.Duration) {
	for _, r := range results {
		w.p.add(trial.HazardLine(r, w.lang))
	}
}

func (w judgeWatch) LeftOut(e experiment.Experiment, why error) {
	w.p.add(trial.Line{Text: fmt.Sprintf("%s: %v", e.Hazard, why)})
}

func (p *judgePage) add(line trial.Line) {
	p.change(func() {
		if line.Text != "" {
			p.now.Lines = append(p.now.Lines, line)
		}
	})
}

// showReport serves the page with the timelines. It has its own style, and no script.
func (p *judgePage) showReport(w http.ResponseWriter, r *http.Request) {
	var text []byte
	p.s.hub.Do(func() { text = p.report })
	if text == nil {
		p.s.showProblem(w, r, reject(http.StatusNotFound, "There are no timelines yet: put a lock on trial first.", "还没有时间线：请先检验一把锁。"))
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text)
}
