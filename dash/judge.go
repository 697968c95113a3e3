package dash

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/experiment"
	"oversell/lab/terminal"
)

// judgePage puts a lock of the class on trial: it runs oversell judge, and shows each verdict when
// it is there.
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
	Lines    []verdictLine
	Reported bool // there is a page with timelines
}

// verdictLine is a line of judge. Lines without a sign are headings and totals.
type verdictLine struct{ Sign, Class, Name, Text string }

const (
	maxJudgeLines = 400
	maxCommand    = 2000 // characters
	maxReport     = 50 << 20
)

func newJudgePage(s *Server) *judgePage {
	p := &judgePage{s: s}
	s.hub.Open("judge", func() []hub.Message { return []hub.Message{p.draw()} })
	s.routes.HandleFunc("GET /dash/judge", func(w http.ResponseWriter, r *http.Request) {
		data := struct {
			Unable  bool
			Hazards []hazard
		}{s.Binary == "", slices.DeleteFunc(hazards(), func(h hazard) bool { return !slices.Contains(judged(), h.ID) })}
		s.write(w, http.StatusOK, "judge", view{Lang: language(r), Page: "break", Topic: "judge", Title: bilingual("A lock of your own", "你自己的锁"), Data: data})
	})
	s.routes.HandleFunc("GET /dash/judge/report", p.showReport)
	s.routes.HandleFunc("POST /dash/judge/start", s.withToken(p.start))
	return p
}

// judged returns the hazards that can be selected: those that concern a lock, not the database alone.
func judged() (names []string) {
	for _, e := range experiment.All() {
		if e.Lab == nil {
			names = append(names, e.Hazard)
		}
	}
	return names
}

func (p *judgePage) draw() hub.Message { return p.s.part("judge", "verdicts", p.now) }

func (p *judgePage) change(change func()) {
	p.s.hub.Send("judge", func() []hub.Message { change(); return []hub.Message{p.draw()} })
}

func (p *judgePage) start(ctx context.Context, req request) error {
	command, lang := strings.TrimSpace(req.Form.Get("command")), language(req.Request)
	var selected []string
	for _, h := range req.Form["hazard"] {
		if h != "" {
			selected = append(selected, h)
		}
	}
	unknown := slices.IndexFunc(selected, func(h string) bool { return !slices.Contains(judged(), h) })
	switch {
	case p.s.Binary == "":
		return reject(http.StatusConflict, "This page cannot run experiments: they kill and freeze servers. Start a lab with oversell lab, on a machine where the servers are installed.",
			"本页不能做破坏实验：实验会杀死和冻结服务器。请在装有这些服务器的机器上运行 oversell lab。")
	case command == "" || len(command) > maxCommand || strings.ContainsAny(command, "\x00\n\r"):
		return badRequest("command must be one line of the shell, of at most %d characters.", "command 必须是一行 shell 命令，最多 %d 个字符。", maxCommand)
	case unknown >= 0:
		return badRequest("Hazard %q does not exist.", "没有故障 %q。", selected[unknown])
	}
	first := bilingual("starting the lock, and a separate lab for it; this takes half a minute", "正在启动这把锁和单独的实验室；大约需要半分钟")
	return p.s.jobs.follow(ctx, req.Who, api.Textf("judge %s", "检验 %s", command), first, &p.now.progress, p.change, func(ctx context.Context) error {
		p.change(func() { p.now.Command, p.now.Lines, p.now.Reported = command, nil, false })
		return p.judge(ctx, command, selected, lang)
	})
}

// judge runs oversell judge. Its exit status 1 means that a verdict contradicts a claim, and its
// standard error explains the others.
func (p *judgePage) judge(ctx context.Context, command string, selected []string, lang string) (err error) {
	folder, err := os.MkdirTemp("", "oversell-judge-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "verdict.html")
	args := []string{"judge", "--quiet", "--html", file}
	if len(selected) > 0 {
		args = append(args, "--hazard", strings.Join(selected, ","))
	}
	const wide = 5000 // columns, so that no line is folded
	cmd := p.s.runner(lang, nil).Process(ctx, wide, append(args, "--", command)...)
	cmd.Args[0] = "oversell" // in the command lines of the report
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.add(lines.Text())
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() != 1 {
		return badRequest("%s", "%s", strings.TrimSpace(strings.TrimPrefix(problems.String(), "oversell: ")))
	}
	return p.keepReport(file)
}

func (p *judgePage) add(line string) {
	p.change(func() {
		if len(p.now.Lines) < maxJudgeLines && strings.TrimSpace(line) != "" {
			p.now.Lines = append(p.now.Lines, verdictLineOf(line))
		}
	})
}

// verdictLineOf reads "✓ crash      safe: ...".
func verdictLineOf(line string) verdictLine {
	sign, rest, _ := strings.Cut(line, " ")
	class := map[string]string{terminal.Good: "safe", terminal.Bad: "harm", terminal.Costly: "cost", terminal.Inconclusive: "doubt"}[sign]
	if class == "" {
		return verdictLine{Text: line}
	}
	name, text, _ := strings.Cut(rest, "  ")
	return verdictLine{Sign: sign, Class: class, Name: name, Text: strings.TrimSpace(text)}
}

func (p *judgePage) keepReport(file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // written by judge in our own folder
	if errors.Is(err, os.ErrNotExist) || len(text) > maxReport {
		return nil // a lock that fails a basic check has no timelines
	}
	if err != nil {
		return err
	}
	p.change(func() { p.report, p.now.Reported = text, true })
	return nil
}

// showReport serves the page with the timelines. It has its own style, and no script.
func (p *judgePage) showReport(w http.ResponseWriter, r *http.Request) {
	var text []byte
	p.s.hub.Send("judge", func() []hub.Message { text = p.report; return nil })
	if text == nil {
		p.s.showProblem(w, r, reject(http.StatusNotFound, "There are no timelines yet: put a lock on trial first.", "还没有时间线：请先检验一把锁。"))
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text)
}
