package dash

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"oversell/dash/hub"
	"oversell/lab/check"
	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/report"
)

// firstLesson is a lesson of one minute: four trials, each with a prediction of the class before it.
type firstLesson struct {
	s *Server
	// The hub's mutex protects the fields below: see hub.Send.
	progress
	Trials []*firstTrial
	Done   int // requests of the running trial
}

type firstTrial struct {
	Strategy string
	// OneReplica means that all requests go to the first replica.
	OneReplica bool

	Setting, Why Text
	Predicted    check.Verdict  // Broken or Holds; empty before the prediction
	Result       *report.Result // nil before the run
}

// Right reports whether the prediction was right.
func (t *firstTrial) Right() bool { return t.Result.Verdict == t.Predicted }

// Headline returns the verdict in a few words.
func (t *firstTrial) Headline() Text { return Text(report.Headline(*t.Result)) }

// Next returns the index of the first trial without a result. It is len(Trials) after the last one.
func (l *firstLesson) Next() int {
	for i, t := range l.Trials {
		if t.Result == nil {
			return i
		}
	}
	return len(l.Trials)
}

// Last returns the trial of the newest result, or nil before the first one.
func (l *firstLesson) Last() *firstTrial {
	if l.Next() == 0 {
		return nil
	}
	return l.Trials[l.Next()-1]
}

// Total returns the number of requests of a trial.
func (l *firstLesson) Total() int { return firstClients * firstLoops }

const firstClients, firstLoops = 100, 20

func firstTrials() []*firstTrial {
	return []*firstTrial{
		{
			Strategy: "none", Setting: Text{"No lock. Three replicas read the stock, and write it back less one.", "不加锁。三个副本读取库存，减一，再写回。"},
			Why: Text{
				"Two requests read the same number, and both write the same number less one: one sale leaves no trace in the stock.",
				"两个请求读到同一个数，又都写回同一个数减一：其中一次售出没有在库存里留下痕迹。",
			},
		},
		{
			Strategy: "mutex", OneReplica: true, Setting: Text{"A mutex, and only one replica.", "加互斥锁，只用一个副本。"},
			Why: Text{"All requests are in one process, and the mutex lets in one after the other.", "所有请求都在同一个进程里，互斥锁让它们一个接一个地进入。"},
		},
		{
			Strategy: "mutex", Setting: Text{"The same mutex, but three replicas.", "同样的互斥锁，但有三个副本。"},
			Why: Text{"Each replica has a mutex of its own. Requests of different replicas do not wait for each other.", "每个副本有自己的互斥锁，不同副本的请求并不互相等待。"},
		},
		{
			Strategy: "redis", Setting: Text{"A lock in Redis, which the three replicas share.", "三个副本共用一把 Redis 锁。"},
			Why: Text{"The lock is outside of the replicas, so only one request of all three is inside.", "锁在副本之外，三个副本合起来也只有一个请求能进入。"},
		},
	}
}

func newFirstLesson(s *Server) {
	l := &firstLesson{s: s, Trials: firstTrials()}
	s.hub.Open("first", l.all)
	s.routes.HandleFunc("GET /dash/first", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, r, "first", Text{"First lesson", "第一课"}, nil)
	})
	l.ask()
	s.routes.HandleFunc("POST /dash/first/run", s.withToken(l.run))
	s.routes.HandleFunc("POST /dash/first/again", s.withToken(l.again))
}

// all returns the messages that draw the whole page. The hub's mutex must be locked.
func (l *firstLesson) all() []hub.Message {
	return []hub.Message{l.s.part("first", "lesson", l), l.s.part("first", "tally", l.s.votes.count("first"))}
}

// ask lets the class vote on the next trial. After the last one, no question is open.
func (l *firstLesson) ask() {
	q := question{Page: "first", Topic: "first"}
	l.change(func() {
		if next := l.Next(); next < len(l.Trials) {
			q.Ask = l.Trials[next].Setting
			q.Options = []Text{{"✗ updates are lost", "✗ 会丢失更新"}, {"✓ no update is lost", "✓ 不会丢失更新"}}
		}
	})
	l.s.votes.ask(q)
}

func (l *firstLesson) change(change func()) {
	l.s.hub.Send("first", func() []hub.Message { change(); return l.all() })
}

// again begins the lesson anew.
func (l *firstLesson) again(context.Context, request) error {
	var err error
	l.change(func() {
		if l.Running {
			err = reject(http.StatusConflict, "A trial is running. Wait until it ends.", "正在运行，请等它结束。")
			return
		}
		l.progress, l.Trials = progress{}, firstTrials()
	})
	if err == nil {
		l.ask()
	}
	return err
}

// run runs the next trial. The form names it, so that a second press of a button runs no other trial.
func (l *firstLesson) run(ctx context.Context, req request) error {
	predicted := check.Verdict(req.Form.Get("prediction"))
	if predicted != check.Broken && predicted != check.Holds {
		return badRequest("prediction must be %s or %s.", "prediction 必须是 %s 或 %s。", check.Broken, check.Holds)
	}
	next, total := 0, 0
	l.change(func() { next, total = l.Next(), len(l.Trials) })
	if n, err := strconv.Atoi(req.Form.Get("trial")); err != nil || n != next || next == total {
		return reject(http.StatusConflict, "This trial has run already, or is not the next one.", "这个实验已经运行过，或者还没有轮到它。")
	}
	trial := l.Trials[next]
	plan := comparison.Plan{
		Target: l.s.Lab.Target, Token: l.s.Lab.Token, Strategies: []string{trial.Strategy},
		Clients: firstClients, Loops: firstLoops, Stock: l.Total(), Wait: time.Minute, Seed: time.Now().UnixMilli(),
		Machine: l.s.Machine, Versions: l.s.Versions,
	}
	if trial.OneReplica {
		if len(l.s.Lab.Replicas) == 0 {
			return badRequest("This page does not know the address of a replica. Start the page with --replicas.", "本页不知道副本的地址。启动页面时请用 --replicas 给出。")
		}
		plan.Target = l.s.Lab.Replicas[0]
	}
	return l.s.jobs.follow(ctx, req.Who, Text{"the first lesson", "第一课"}, trial.Setting, &l.progress, l.change, func(ctx context.Context) error {
		l.change(func() { trial.Predicted, l.Done = predicted, 0 })
		results, err := comparison.Run(ctx, plan, firstWatch{l})
		if err != nil {
			return err
		}
		l.change(func() { trial.Result = &results[0].Result })
		l.ask()
		return nil
	})
}

// firstWatch shows how many requests of a trial are done.
type firstWatch struct{ l *firstLesson }

// Begin does nothing: the page shows the trial already.
func (firstWatch) Begin(string, int, int) {}

// Progress shows the number of requests that are done.
func (w firstWatch) Progress(p load.Progress) { w.l.change(func() { w.l.Done = p.Done }) }

// End does nothing: run has the result.
func (firstWatch) End(report.Result) {}
