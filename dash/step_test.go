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

// TestStepIntoALostUpdate plays with the keyboard alone until an update is lost. The loss, the row and
// both clients must be in view without scrolling, and the strategy and the round must survive a reload.
// Before Hint is pressed, the page must not say whether an order loses an update.
func TestStepIntoALostUpdate(t *testing.T) {
	tab := browser(t)
	const state = `['#part-round', '#part-row', '#part-A', '#part-B', 'select'].map(part => document.querySelector(part).textContent).join()`
	var before, after, quiet, link string
	do(t, tab,
		screens()[1].look("light"),
		chromedp.Navigate(address("/dash/step")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		tabTo(`form button.go`), beginRound(keys(kb.Enter)), reads(`#part-round`, "Press a or b"), reads(`#part-row .row:nth-child(2)`, "10"),
		keys("a"), reads(`#part-A .says`, "has read 10"), reads(`#part-A .done .sent`, "SELECT * FROM db_stock"),
		reads(`#listing .at[data-sign=A]`, "if item.Count < o.Qty {"), reads(`#go-a`, "new = count - 1"),
		keys("b"), reads(`#part-B .says`, "has read 10"), reads(`#listing .at[data-sign=AB]`, "if item.Count < o.Qty {"),
		keys("a"), reads(`#part-A .says`, "has read 10; is about to write 9"),
		keys("u"), reads(`#part-round`, "Move 2: B has read 10"), reads(`#go-a`, "new = count - 1"), // the page plays the earlier moves in a new round
		keys("a"), reads(`#part-A .says`, "is about to write 9"), reads(`#part-row .row:nth-child(2)`, "10"),
		keys("b"), reads(`#part-B .says`, "is about to write 9"),
		keys("a"), reads(`#part-A .says`, "has written 9"), reads(`#part-row .row:nth-child(2)`, "9"),
		chromedp.Evaluate(state, &before),
		chromedp.Navigate(address("/dash/step")), reads(`#part-round`, "Move 5: A has written 9"), reads(`#go-b`, "write(new)"),
		chromedp.Evaluate(state, &after),
		chromedp.TextContent(`main`, &quiet, chromedp.ByQuery),
	)
	if before != after {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	for _, answer := range []string{"rders left", "Fewest", "No order", "Another order", "Solution"} {
		if strings.Contains(quiet, answer) {
			t.Errorf("the page says %q before Hint is pressed:\n%s", answer, quiet)
		}
	}
	pictures(t, tab, "step")
	accessible(t, tab, axe(t), "an open round")
	do(t, tab, chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), keys("b"), reads(`.presses .sentence.lost`, "2 sold, 1 taken from stock"), reads(`#part-round`, "Move 6: an update is lost."))
	roundFits(t, tab)
	steady(t, tab)
	do(t, tab, keys("p"))
	roundFits(t, tab)
	do(t, tab, keys("p", "h"), reads(`#ahead`, "Orders left that lose an update: 2 / 2"), reads(`#ahead`, "Fewest moves: 6"))
	pictures(t, tab, "step-end")
	accessible(t, tab, axe(t), "a lost update")
	do(t, tab,
		keys("n"), reads(`#part-round`, "redis: try to lose an update: this strategy should not let you."), reads(`#go-a`, "buy():"),
		chromedp.Evaluate(`location.search + document.querySelector('select[name=strategy]').value`, &link),
	)
	if link != "?strategy=redisredis" {
		t.Errorf("address and form have %q", link)
	}
}

// loseWithNone lets both clients of a new round read before they write, until the page reports the loss.
func loseWithNone(ctx context.Context) error {
	return chromedp.Run(ctx,
		keys("a"), reads(`#part-A .says`, "has read 10"), keys("b"), reads(`#part-B .says`, "has read 10"),
		keys("a"), reads(`#part-A .says`, "is about to write 9"), keys("b"), reads(`#part-B .says`, "is about to write 9"),
		keys("a"), reads(`#part-A .says`, "has written 9"), keys("b"), reads(`.presses .sentence.lost`, "2 sold, 1 taken from stock"),
	)
}

// beginRound starts a round, and waits until the page shows it: an earlier round without a move looks the same.
func beginRound(start chromedp.Action) chromedp.Action {
	const number = `document.querySelector('#part-round [data-round]')?.dataset.round`
	return chromedp.Tasks{
		chromedp.Evaluate(`window.earlier = `+number+`; true`, nil), start,
		chromedp.Poll(number+` !== window.earlier`, nil, chromedp.WithPollingTimeout(0)), reads(`#part-A`, "has sent no request yet"),
	}
}

// TestStepKeepsTheStrategy loses the same update with a prediction, to the answers of both clients, which
// the list has under the numbers of their moves. The form has the strategy after a reload.
func TestStepKeepsTheStrategy(t *testing.T) {
	tab := browser(t)
	var chosen string
	do(t, tab,
		chromedp.Navigate(address("/dash/step?strategy=mutex")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		setValue(`select[name=strategy]`, "none"), beginRound(press(`form button.go`)),
		press(`#guess-8`), reads(`#guess-8[aria-pressed=true]`, "8"),
		chromedp.Reload(), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), reads(`#guess-8[aria-pressed=true]`, "8"),
		chromedp.Evaluate(`document.querySelector('select[name=strategy]').value`, &chosen),
		chromedp.ActionFunc(loseWithNone), stepAll("a"), stepAll("b"),
		reads(`#part-row`, "✗ you predicted 8"), reads(`#part-A .says`, "■ answer: sold, 9 left"),
		reads(`#order tbody tr:last-child`, "8Banswer: sold, 9 left"),
		reads(`#order tbody tr:nth-child(5)`, "UPDATE db_stock SET count = 9 WHERE id = "),
		reads(`.presses .sentence.lost`, "2 sold, 1 taken from stock"),
	)
	if chosen != "none" {
		t.Errorf("after a reload, the form has %q", chosen)
	}
	inView(t, tab, `.sentence`, "light", "dark")
}

// roundFits checks that a class sees a round on a small projector without scrolling: the loss, the
// buttons, the row, and the code of both clients. The menu fits one line.
func roundFits(t *testing.T, tab window) {
	t.Helper()
	const outside = `['header', '.presses', '#part-round', '#go-a', '#go-b', '#undo', '#end', '#part-row .lock', '#part-row .row:nth-child(2)', '#part-A .program', '#part-B .program',
		'#try'].filter(selector => {
			const box = document.querySelector(selector)?.getBoundingClientRect();
			return box && (box.top < 0 || box.bottom > innerHeight || box.right > innerWidth);
		})`
	const rows = `new Set([...document.querySelectorAll('header nav a')].map(a => a.getBoundingClientRect().top)).size`
	const projected = `document.documentElement.classList.contains('projector')`
	var unseen, small []string
	var lines int
	var large bool
	do(t, tab, screens()[1].look("light"), chromedp.Evaluate(`scrollTo(0, 0)`, nil),
		chromedp.Evaluate(outside, &unseen), chromedp.Evaluate(rows, &lines), chromedp.Evaluate(smallTexts, &small), chromedp.Evaluate(projected, &large))
	if len(unseen) > 0 || lines != 1 || large && len(small) > 0 {
		t.Errorf("projector %v: not in view: %q; the menu has %d lines; small: %q", large, unseen, lines, small)
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
		beginRound(press(`form button.go`)),
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
		chromedp.KeyEvent("b"), reads(`#part-B .next`, "在等 A 的锁"),
		reads(`#listing .at[data-sign=B]`, "request := Request{"),
		reads(`#part-B .next .sent`, "EVALSHA acquire.lua 2 redis:stock:"),
		reads(`.lock`, "锁 A"),
		reads(`#listing h3:last-of-type`, "locks/guard.go"),
		chromedp.Reload(), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		reads(`#part-B .next`, "在等 A 的锁"),
		reads(`#listing .at[data-sign=A]`, "if o.Nested {"),
		chromedp.KeyEvent("h"), reads(`#ahead`, "任何顺序都不会丢失更新"),
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
		beginRound(press(`form button.go`)),
		chromedp.KeyEvent("p"), chromedp.WaitVisible(`#projector[aria-pressed=true]`, chromedp.ByQuery),
		chromedp.KeyEvent("a"), reads(`#part-A`, "wants the lock"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has the lock"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "wants the lock"),
		chromedp.KeyEvent("b"), reads(`#part-B`, "waits for the lock"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "has read 10"),
		chromedp.KeyEvent("a"), reads(`#part-A`, "is about to write 9"),
		chromedp.KeyEvent("a"), reads(`#part-A .says`, "has written 9"),
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
		press(`form button.go`), press(`#hint`), press(`#solve`),
		reads(`#part-round`, "Fewest switches between A and B"),
		reads(`.sentence.lost`, "2 sold, 1 taken from stock"),
		reads(`#order tbody tr:last-child`, "answer: sold, 9 left"),
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
		lab, err := stepper.Open(testLab, id)
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
