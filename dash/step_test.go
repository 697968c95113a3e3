package dash_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/dash"
	"oversell/lab/rig/rigtest"
	"oversell/lab/stepper"
)

// TestStepIntoALostUpdate predicts that 8 pieces are left, and presses keys and buttons until an update
// is lost and 9 are left. The page must mark each client's line of code, take a move back, show the
// same round after a reload, and show all of it on a projector.
func TestStepIntoALostUpdate(t *testing.T) {
	tab := browser(t)
	const state = `['#part-round', '#part-ending', '#part-row', '#part-A', '#part-B'].map(part => document.querySelector(part).textContent).join()`
	var before, after, hidden, link string
	do(t, tab,
		chromedp.Navigate(address("/dash/step?strategy=none")),
		reads(`#part-round`, "No round is open"), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		tabTo(`form button.go`), keys(kb.Enter),
		reads(`#part-A`, "has sent no request yet"),
		press(`#guess-8`),
		reads(`#guess-8[aria-pressed=true]`, "8"),
		chromedp.KeyEvent("a"),
		reads(`#part-A`, "has read 10"),
		reads(`#part-A .sent`, "SELECT * FROM `db_stock`"),
		reads(`#part-codeA .at`, "if item.Count < o.Qty {"),
		reads(`#part-A .next-line`, "about to run: if item.Count < o.Qty {"),
		chromedp.KeyEvent("b"),
		reads(`#part-B`, "has read 10"),
		reads(`#part-codeB .at`, "if item.Count < o.Qty {"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "is about to write 9"), reads(`.goal`, "Moves: 3"),
		chromedp.KeyEvent("u"), reads(`.goal`, "Moves: 2"), // the page plays the earlier moves in a new round
		reads(`#part-A .taken > li:last-child`, "has read 10"), reads(`#part-B`, "has read 10"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "is about to write 9"), reads(`.goal`, "Moves: 3"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has written 9"),
		reads(`#part-A .taken > li:last-child .sent`, "UPDATE db_stock SET count = 9 WHERE id = "),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has its answer"),
		press(`#go-b`), reads(`#part-B`, "is about to write 9"), reads(`.goal`, "Moves: 6; shortest: 6"),
		chromedp.Evaluate(state, &before),
		chromedp.Reload(),
		reads(`.goal`, "Moves: 6; shortest: 6"), reads(`#guess-8[aria-pressed=true]`, "8"), reads(`#part-codeB .at`, "s.ledger.Write("),
		chromedp.Evaluate(state, &after),
	)
	if before != after {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	pictures(t, tab, "step")
	accessible(t, tab, axe(t), "an open round")
	do(t, tab, chromedp.KeyEvent("p"))
	roundFits(t, tab)
	do(t, tab,
		chromedp.KeyEvent("p"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "has written 9"), reads(`.goal`, "Moves: 7; shortest: 6"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "has its answer"), reads(`.goal`, "Goal: lose an update. Moves: 7; shortest: 6"),
		reads(`#part-round`, "both clients have their answers"),
		reads(`#part-row`, "?"),
		chromedp.Text(`main`, &hidden, chromedp.ByQuery),
		tabTo(`#show`), keys(kb.Enter),
		reads(`#part-ending`, "2 sold, 9 left of 10: an update was lost."),
		reads(`#part-row .row`, "9"),
		reads(`#part-ending`, "✗ you predicted 8"),
		reads(`.goal`, "Goal reached: an update is lost. Moves: 7; shortest: 6"),
		reads(`#part-A`, "answer: sold"),
		chromedp.Evaluate(`location.hash`, &link),
	)
	if strings.Contains(hidden, "answer:") || strings.Contains(hidden, "was lost") || strings.Contains(hidden, "Goal reached") {
		t.Errorf("the result is visible before it is revealed:\n%s", hidden)
	}
	if link != "" {
		t.Errorf("the token stays in the address: %s", link)
	}
	inView(t, tab, `.sentence`, "light", "dark")
	pictures(t, tab, "step-end")
}

// roundFits checks that a class sees a round on a small projector without scrolling: the buttons, and
// the last step of both clients with its commands. The menu fits one line.
func roundFits(t *testing.T, tab window) {
	t.Helper()
	const outside = `['header', '#go-a', '#go-b', '#undo', '#end', '#part-row .row', '#part-A .taken > li:last-child', '#part-B .taken > li:last-child',
		'#part-A .next-line', '#part-B .next-line'].filter(selector => {
			const box = document.querySelector(selector)?.getBoundingClientRect();
			return box && (box.top < 0 || box.bottom > innerHeight || box.right > innerWidth);
		})`
	const rows = `new Set([...document.querySelectorAll('header nav a')].map(a => a.getBoundingClientRect().top)).size`
	var unseen, small []string
	var lines int
	do(t, tab, screens()[1].look("light"), chromedp.WaitVisible(`#projector[aria-pressed=true]`, chromedp.ByQuery), chromedp.Evaluate(`scrollTo(0, 0)`, nil),
		chromedp.Evaluate(outside, &unseen), chromedp.Evaluate(rows, &lines), chromedp.Evaluate(smallTexts, &small))
	if len(unseen) > 0 || lines != 1 || len(small) > 0 {
		t.Errorf("not in view: %q; the menu has %d lines; small: %q", unseen, lines, small)
	}
}

// TestPressOutlastsTheNews changes the page while a mouse button is down. The press must not be
// lost, and the page must be up to date after it.
func TestPressOutlastsTheNews(t *testing.T) {
	tab := browser(t)
	var at []float64
	mouse := func(kind input.MouseType) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			return chromedp.MouseEvent(kind, at[0], at[1], chromedp.Button("left"), chromedp.ClickCount(1)).Do(ctx)
		})
	}
	do(t, tab,
		chromedp.Navigate(address("/dash/step?strategy=none")),
		press(`form button.go`),
		reads(`#part-A`, "has sent no request yet"),
		chromedp.Evaluate(`(b => { b.scrollIntoView({block: 'center'}); const r = b.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })(document.querySelector('#guess-9'))`, &at),
		mouse(input.MousePressed),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has read 10"),
		mouse(input.MouseReleased),
		reads(`#guess-9[aria-pressed=true]`, "9"),
		press(`#end`), reads(`#part-round`, "The round was stopped"),
	)
}

// TestStepWaitsInChinese: with the strategy redis, client B waits for the lock of client A. The
// page shows this in Chinese.
func TestStepWaitsInChinese(t *testing.T) {
	rigtest.Nightly(t, "TestStepIntoALostUpdate of ./dash, TestRecordedSteps of ./lab/stepper")
	tab := browser(t, "zh-CN")
	do(t, tab,
		chromedp.Navigate(address("/dash/step?strategy=redis")),
		press(`form button.go`),
		reads(`#part-A`, "还没有发送请求"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "想要锁"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "拿到了锁"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "想要锁"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "在等锁"),
		reads(`#part-codeB .at`, "hold, err := g.Acquire("),
		reads(`#part-B .next-line`, "正在执行： hold, err := g.Acquire("),
		reads(`#part-B .taken > li:last-child .sent`, "EVALSHA acquire.lua 2 redis:stock:"),
		reads(`.goal`, "记录过的所有顺序都不会丢失更新"),
		reads(`#part-codeB h3:last-of-type`, "locks/guard.go"),
		chromedp.Reload(),
		reads(`#part-B`, "在等锁"),
		reads(`#part-codeA .at`, "if o.Nested {"),
	)
	pictures(t, tab, "step-zh")
	do(t, tab, focus(`#end`), chromedp.KeyEvent(kb.Enter), reads(`#part-round`, "这一轮已停止"))
}

// TestStepProjector steps through the longer lists of a lock on a projector.
func TestStepProjector(t *testing.T) {
	rigtest.Nightly(t, "TestStepIntoALostUpdate of ./dash")
	tab := browser(t)
	do(t, tab,
		chromedp.EmulateViewport(1280, 800),
		chromedp.Navigate(address("/dash/step?strategy=redis")),
		press(`form button.go`),
		reads(`#part-A`, "has sent no request yet"),
		chromedp.KeyEvent("p"), chromedp.WaitVisible(`#projector[aria-pressed=true]`, chromedp.ByQuery),
		chromedp.KeyEvent("a"), reads(`#part-A`, "wants the lock"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has the lock"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "wants the lock"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "waits for the lock"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has read 10"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "is about to write 9"),
		chromedp.KeyEvent("a"), reads(`#part-A .taken > li:last-child`, "has written 9"),
	)
	roundFits(t, tab)
	pictures(t, tab, "step-projector")
	do(t, tab, chromedp.KeyEvent("p"), press(`#end`), reads(`#part-round`, "The round was stopped"))
}

// TestStepSolution checks that the page finds and plays a schedule in which `none` loses an update.
func TestStepSolution(t *testing.T) {
	rigtest.Nightly(t, "TestSolve of ./lab/stepper")
	tab := browser(t)
	do(t, tab,
		chromedp.Navigate(address("/dash/step?strategy=none")),
		press(`button[name=solve]`),
		reads(`#part-round`, "Fewest switches between A and B"),
		reads(`#part-ending .sentence`, "an update was lost."),
		reads(`#order tbody tr:last-child`, "answer: sold, 9 left"),
		reads(`#part-round`, "this is the solution."),
	)
}

// TestStepEveryStrategy runs each strategy step by step; outside the nightly tests, one of each family.
// A line of code must report its first step.
func TestStepEveryStrategy(t *testing.T) {
	page := dash.New(dash.Config{Lab: testLab.Addresses()})
	defer page.Close()
	ids := []string{"none", "mutex", "for-update", "version", "db-row", "redis", "redlock", "zk"}
	if rigtest.IsNightly() {
		ids = page.Strategies(t)
	}
	for _, id := range ids {
		lab, err := stepper.Open(testLab.Addresses(), id)
		if err != nil {
			t.Fatal(err)
		}
		round, err := lab.Begin(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		for round.State(stepper.A) != stepper.Ended && err == nil {
			err = round.Go(t.Context(), stepper.A)
		}
		if err := errors.Join(err, round.Close()); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if len(round.Log) < 3 || !page.Marks(t, id, round.Log[0].Step) {
			t.Errorf("%s: no line reports the first step: %+v", id, round.Log)
		}
	}
}
