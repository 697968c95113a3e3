package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/load"
	"oversell/lab/rig"
)

const (
	// patience is how long a statement must get no reply to count as waiting.
	patience = 500 * time.Millisecond
	// answerTimeout is longer than any right reply takes, also on a slow machine.
	answerTimeout = 30 * time.Second
	// repeatPause is the time between two tries of a repeated statement.
	repeatPause = 100 * time.Millisecond
)

// session is a connection to one server. It answers with the text that the server's own client
// would print.
type session interface {
	send(ctx context.Context, statement string) reply
	// events returns the messages that the server sends by itself, or nil.
	events() <-chan string
	// end closes the connection. With crash, the server gets no farewell.
	end(crash bool)
}

type reply struct {
	text   string
	failed bool // text is an error
}

type player struct {
	addrs    rig.Addresses
	out      io.Writer
	lang     string
	sessions map[string]session    // by prompt, such as "A mysql"
	waiting  map[string]chan reply // the replies that have not come yet, by session
}

// Play runs the exercise on the servers at addrs and writes its transcript to out, in the language
// lang, en or zh. It returns an error as soon as a reply is not the expected one.
func (e Exercise) Play(ctx context.Context, addrs rig.Addresses, out io.Writer, lang string) (err error) {
	p := &player{addrs: addrs, out: out, lang: lang, sessions: map[string]session{}, waiting: map[string]chan reply{}}
	defer func() {
		for _, s := range p.sessions { // an open transaction would keep the tables of clean locked
			s.end(false)
		}
		p.sessions = map[string]session{}
		err = errors.Join(err, p.clean(context.WithoutCancel(ctx), e))
	}()
	if err := p.clean(ctx, e); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s: %s\n\n", e.Name, e.Title.In(lang))
	for _, s := range e.steps {
		if err := p.play(ctx, s); err != nil {
			return fmt.Errorf("exercise %s, line %d of its file: %w", e.Name, s.line, err)
		}
	}
	return nil
}

// clean runs the statements that remove what the exercise creates. Each uses a session of its own.
func (p *player) clean(ctx context.Context, e Exercise) error {
	for _, s := range e.clean {
		session, err := p.open(s.server)
		if err == nil {
			var answer reply
			if answer, err = await(ctx, start(ctx, session, s.text)); err == nil && answer.failed {
				err = errors.New(answer.text)
			}
			session.end(false)
		}
		if err != nil {
			return fmt.Errorf("exercise %s: clean up: %s: %w", e.Name, s.text, err)
		}
	}
	return nil
}

func (p *player) open(server string) (session, error) {
	switch server {
	case mysqlServer:
		return openMySQL(p.addrs.MySQL)
	case redisServer:
		return openRedis(p.addrs.Redis)
	default:
		return openZookeeper(p.addrs)
	}
}

func (p *player) play(ctx context.Context, s step) error {
	switch s.kind {
	case blank:
		p.print("")
	case comment:
		p.print("# " + strings.ReplaceAll(s.comment.In(p.lang), "\n", "\n# "))
	case statement:
		return p.send(ctx, s)
	case receives:
		return p.receive(ctx, s)
	case dies:
		p.print(s.session + " " + p.text(api.Text{EN: "dies: its connection breaks", ZH: "崩溃：连接断开"}))
		for prompt, session := range p.sessions {
			if strings.HasPrefix(prompt, s.session+" ") {
				session.end(true)
				delete(p.sessions, prompt)
			}
		}
	case sleep:
		p.print(fmt.Sprintf(p.text(api.Text{EN: "(%s pass)", ZH: "（过了 %s）"}), s.text))
		pause, _ := time.ParseDuration(s.text) // addLine has parsed it
		return load.Sleep(ctx, pause)
	}
	return nil
}

// send sends a statement, and prints its reply or that it waits.
func (p *player) send(ctx context.Context, s step) error {
	prompt := s.session + " " + s.server
	if p.waiting[s.session] != nil {
		return fmt.Errorf("%s still waits for its reply", s.session)
	}
	c := p.sessions[prompt]
	if c == nil {
		var err error
		if c, err = p.open(s.server); err != nil {
			return err
		}
		p.sessions[prompt] = c
	}
	indent := "\n" + strings.Repeat(" ", len(prompt)-2) + "-> "
	p.print(prompt + "> " + strings.ReplaceAll(s.text, "\n", indent))
	switch s.mode {
	case waits:
		return p.wait(ctx, s, start(ctx, c, s.text))
	case repeated:
		return p.repeat(ctx, s, c)
	default:
		answer, err := await(ctx, start(ctx, c, s.text))
		return p.judge(s, answer, err)
	}
}

// wait expects that a statement gets no reply for a while.
func (p *player) wait(ctx context.Context, s step, answer chan reply) error {
	select {
	case early := <-answer:
		p.printReply(early.text)
		return errors.New("the statement should wait, but it was answered")
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		p.waiting[s.session] = answer
		p.printReply(p.text(api.Text{EN: "(waits)", ZH: "（等待）"}))
		return nil
	}
}

// repeat sends a statement until it gets the expected reply. It prints the last reply only.
func (p *player) repeat(ctx context.Context, s step, c session) error {
	for began := time.Now(); ; {
		answer, err := await(ctx, start(ctx, c, s.text))
		if took := time.Since(began); err != nil || s.met(answer.text) || took > answerTimeout {
			p.printReply(fmt.Sprintf(p.text(api.Text{EN: "(repeated, after %.1f s)", ZH: "（反复执行，%.1f 秒后）"}), took.Seconds()))
			return p.judge(s, answer, err)
		}
		if err := load.Sleep(ctx, repeatPause); err != nil {
			return err
		}
	}
}

// receive prints the reply of a waiting statement, or an event. With (nothing), it expects none.
func (p *player) receive(ctx context.Context, s step) error {
	p.print(s.session + " " + p.text(api.Text{EN: "receives", ZH: "收到"}))
	if s.mode == nothing {
		select {
		case event := <-p.events(s.session):
			p.printReply(event)
			return errors.New("nothing was expected")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(patience):
			p.printReply(p.text(api.Text{EN: "(nothing)", ZH: "（什么也没有）"}))
			return nil
		}
	}
	select {
	case answer := <-p.waiting[s.session]:
		delete(p.waiting, s.session)
		return p.judge(s, answer, nil)
	case event := <-p.events(s.session):
		return p.judge(s, reply{text: event}, nil)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(answerTimeout):
		return fmt.Errorf("nothing came for %v", answerTimeout)
	}
}

// events returns the events of the session's ZooKeeper, or nil, from which nothing ever comes.
func (p *player) events(name string) <-chan string {
	if s := p.sessions[name+" "+zkServer]; s != nil {
		return s.events()
	}
	return nil
}

// judge prints a reply and compares it with the expected one.
func (p *player) judge(s step, answer reply, err error) error {
	if err != nil {
		return err
	}
	p.printReply(answer.text)
	switch {
	case !s.met(answer.text):
		return fmt.Errorf("the reply should be\n  %s", strings.Join(s.want, "\n  "))
	case answer.failed && len(s.want) == 0:
		return errors.New("the statement failed")
	}
	return nil
}

func (p *player) text(t api.Text) string { return t.In(p.lang) }

func (p *player) print(line string) { _, _ = fmt.Fprintln(p.out, line) }

func (p *player) printReply(text string) {
	if text != "" {
		p.print("  " + strings.ReplaceAll(text, "\n", "\n  "))
	}
}

func start(ctx context.Context, s session, statement string) chan reply {
	answer := make(chan reply, 1)
	go func() { answer <- s.send(ctx, statement) }()
	return answer
}

func await(ctx context.Context, answer chan reply) (reply, error) {
	select {
	case got := <-answer:
		return got, nil
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	case <-time.After(answerTimeout):
		return reply{}, fmt.Errorf("the server did not answer within %v", answerTimeout)
	}
}
