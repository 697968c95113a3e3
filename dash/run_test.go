package dash_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	_ "github.com/go-sql-driver/mysql" // the driver "mysql"

	"oversell/dash"
)

// choose selects strategies in place of those that the page has selected.
func choose(strategies ...string) chromedp.Action {
	tasks := chromedp.Tasks{press(`#more summary`), press(`[data-choose=none]`)}
	for _, id := range strategies {
		tasks = append(tasks, press(`input[value=`+id+`]`))
	}
	return append(tasks, press(`#more summary`))
}

// load sets fields of the load, which is folded.
func load(values ...string) chromedp.Action {
	tasks := chromedp.Tasks{press(`#load summary`)}
	for i := 0; i < len(values); i += 2 {
		tasks = append(tasks, setValue(`input[name=`+values[i]+`]`, values[i+1]))
	}
	return tasks
}

// TestRunInABrowser starts a run with the keys on a new page, which has selected none, mutex and redis. Each must
// get a verdict, and the chart must show the lost updates of none.
func TestRunInABrowser(t *testing.T) {
	page := ownPage(t)
	tab := browser(t)
	var link string
	do(t, tab,
		chromedp.Navigate(page("/")),
		load("loops", "20"),
		tabTo(`form.plan button.go`), keys(kb.Enter),
		chromedp.WaitVisible(`#verdicts li:nth-child(1) .gap`, chromedp.ByQuery),
		reads(`#verdicts li:nth-child(1) text.alarm`, " lost"),
		reads(`#verdicts li:nth-child(1)`, "✗ none"),
		reads(`#verdicts li:nth-child(1)`, "updates lost"),
		reads(`#verdicts li:nth-child(2)`, "✗ mutex"),
		reads(`#verdicts li:nth-child(3)`, "✓ redis"),
		reads(`#verdicts li:nth-child(3)`, "no update lost"),
		reads(`#status`, "Finished."),
		reads(`#of`, "none"), // the first broken strategy
		reads(`#sold`, "2,000"), reads(`.counters .alarm b`, ","), reads(`#stage`, "2,000 sold"),
		reads(`#part-results .when`, "Only redis lost nothing here"),
		reads(`#part-results tbody tr:nth-child(1) th`, "redis"),
		reads(`#part-results tbody tr:nth-child(1)`, "✓"),
		reads(`#part-results tbody tr:nth-child(3) th`, "none"),
		reads(`#part-results tbody tr:nth-child(3)`, "✗"),
		chromedp.Evaluate(`location.href`, &link),
	)
	if want, _, _ := strings.Cut(page("/"), "#"); link != want {
		t.Errorf("the token stays in the address: %s", link)
	}
	steady(t, tab)
	inView(t, tab, `#verdicts li:nth-child(3)`, "light", "dark")
	do(t, tab, chromedp.Evaluate(`scrollTo(0, 0)`, nil), chromedp.EmulateViewport(1280, 800))
	for _, part := range []string{`#start`, `#stage`, `.counters`, `#verdicts`} {
		do(t, tab, visible(part)) // all on one screen
	}
	pictures(t, tab, "run")
	for _, width := range []int64{1280, 1920} {
		var outside []string
		do(t, tab, chromedp.EmulateViewport(width, width*5/8), press(`#projector`))
		if chromedp.Run(tab, chromedp.Poll(fits+`.length === 0`, nil, chromedp.WithPollingTimeout(10*time.Second))) != nil {
			do(t, tab, chromedp.Evaluate(fits, &outside))
			t.Errorf("on a projector %d pixels wide, words leave their boxes: %q", width, outside)
		}
		do(t, tab, press(`#projector`))
	}
	do(t, tab, chromedp.EmulateViewport(1280, 800), press(`#more summary`), press(`#figures summary`))
	accessible(t, tab, axe(t), "a run with all its details")
	pictures(t, tab, "run-details")
	do(t, tab,
		press(`#verdicts li:nth-child(3) button`), reads(`#of`, "redis"), reads(`#stage`, "The lock is in Redis."),
		press(`#replay`), chromedp.Poll(points+` < 5`, nil), chromedp.Poll(points+` > 10`, nil), // it goes on
	)
}

// watchPanels is a script that compares, in each frame of the browser, the picture, the counters and the chosen card.
// They must be of the same strategy, none or redis, and have the numbers of the same sample.
const watchPanels = `(() => {
	window.differ = new Set(), window.rows = new Set();
	const text = selector => document.querySelector(selector)?.textContent ?? '', value = text => text === '?' ? text : +text.replaceAll(',', '');
	(function look() {
		requestAnimationFrame(look);
		const card = document.querySelector('#verdicts [aria-pressed=true]'), title = text('#stage title');
		if (!card) return;
		const name = card.firstChild.textContent.split(' ')[1], stock = value(text('#stage').match(/left of ([0-9]{1,3}(,[0-9]{3})*)/)?.[1] ?? '5,000');
		const [sold, taken, lost, row] = ['#sold', '#taken', '#lost', '#stage .number'].map(text).map(value);
		const said = card.children[1].textContent, done = / [/] /.test(card.children[2].textContent) && value(card.children[2].textContent.split(' ')[0]);
		const gap = value(card.querySelector('text.alarm')?.textContent.match(/[0-9,]+/)[0] ?? '0');
		const want = {
			strategy: text('#of') === '(' + name + ')' && title.includes(name === 'none' ? 'There is no lock' : 'The lock is in Redis'),
			row: taken === '?' ? row === '?' && lost === '?' : row === stock - taken, total: taken === '?' || lost === Math.max(0, sold - taken),
			alarm: text('#stage .loss') === (lost > 0 ? text('#sold') + ' sold, ' + text('#taken') + ' taken from stock' : ''),
			chart: lost === '?' || gap === lost, card: done === false || window.failing || stock === 0 || done === sold, verdict: !/[0-9] updates lost/.test(said) || value(said.match(/([0-9,]+)( of [0-9,]+)? updates lost/)[1]) === lost,
		};
		window.rows.add(row);
		Object.entries(want).filter(([, right]) => !right).forEach(([what]) => differ.add(JSON.stringify({ what, name, of: text('#of'), title, sold, taken, lost, gap, done, said })));
	})();
})()`

// TestPanelsAgree compares all panels while two strategies run, the user chooses a card, leaves the tab and returns,
// replays, and reloads the page. Then the stock is 0, the service dies, and a run is stopped.
func TestPanelsAgree(t *testing.T) {
	gate := newGate(t)
	addrs := testLab.Addresses()
	addrs.Target = gate.url
	page := dash.New(dash.Config{Lab: addrs})
	server := httptest.NewServer(page)
	t.Cleanup(func() { page.Close(); server.CloseClientConnections(); server.Close() })
	tab := browser(t)
	agree := func(when string) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			var differ []string
			err := chromedp.Run(ctx, chromedp.Evaluate(`[...window.differ]`, &differ), chromedp.Evaluate(`differ.clear()`, nil))
			if len(differ) > 0 {
				t.Errorf("%s, %d times, such as %s", when, len(differ), differ[0])
			}
			return err
		})
	}
	first, second := `#verdicts li:nth-child(1) button`, `#verdicts li:nth-child(2) button`
	do(t, tab,
		chromedp.Navigate(server.URL+"/#token="+token), choose("none", "redis"), load("loops", "30"), chromedp.Evaluate(watchPanels, nil),
		press(`#start`), chromedp.WaitEnabled(second, chromedp.ByQuery), agree("none runs"),
		press(first), reads(`#of`, "none"), reads(second, " / "), agree("redis runs, and none is chosen"),
		hide(true), hide(false), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), reads(`#of`, "none"), agree("the tab is back"),
		press(second), reads(`#of`, "redis"), reads(`#status`, "Finished."), agree("the run ends"),
		press(second), reads(`#of`, "redis"), hide(true), hide(false), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), reads(`#of`, "redis"), agree("the tab is back after the run"),
		press(first), reads(`#of`, "none"), chromedp.Evaluate(`rows.clear()`, nil), press(`#replay`), chromedp.Poll(`rows.size > 5`, nil), agree("none is replayed"),
		chromedp.Reload(), chromedp.Evaluate(watchPanels, nil), reads(`#sold`, "3,000"), agree("the page is loaded again"),
		load("stock", "0", "loops", "5"), press(`#start`), reads(first, "… none"), reads(`#status`, "Finished."), reads(`#stage .number`, "0"), agree("the stock is 0"),
		setValue(`[name=stock]`, "5000"), setValue(`[name=hold]`, "50"), setValue(`[name=loops]`, "1000"), chromedp.WaitEnabled(`#start:not(.stop)`, chromedp.ByQuery), press(`#start`), reads(first, "/ 100,000"),
		chromedp.Poll(points+` > 5`, nil), chromedp.Evaluate(`failing = true`, nil), chromedp.ActionFunc(func(context.Context) error { gate.closed.Store(true); return nil }),
		reads(`#taken`, "?"), reads(`#stage .number`, "?"), agree("the service is dead"),
		chromedp.ActionFunc(func(context.Context) error { gate.closed.Store(false); return nil }), chromedp.Poll(`document.querySelector('#taken').textContent !== '?'`, nil),
		press(`#start.stop`), reads(`#status`, "Stopped."), agree("the run is stopped"),
	)
}

// fits is a script: the words that leave their card, or their box in the picture of the system.
const fits = `[...document.querySelectorAll('#verdicts text, #stage text:not(.loss)')].filter(text => {
	const at = text.getBoundingClientRect(), middle = (at.left + at.right) / 2, high = (at.top + at.bottom) / 2;
	const box = [...text.closest('svg').querySelectorAll('rect.box'), text.closest('button')].filter(Boolean).map(b => b.getBoundingClientRect())
		.find(b => b.left < middle && middle < b.right && b.top < high && high < b.bottom);
	return !box || at.left < box.left - 1 || at.right > box.right + 1;
}).map(text => text.textContent)`

// points is a script: the number of points in the chart that the page shows.
const points = `(document.querySelector('#verdicts [aria-pressed=true] .line.left')?.getAttribute('points').split(' ').length ?? 0)`

// TestStartStop presses the one button twice at once, which starts one run, and later again, which stops it.
func TestStartStop(t *testing.T) {
	tab := browser(t)
	do(t, tab,
		chromedp.Navigate(ownPage(t)("/")),
		choose("db-row-naive"),
		load("hold", "50", "wait", "60000"),
		chromedp.DoubleClick(`#start`, chromedp.ByQuery),
		chromedp.WaitEnabled(`#start.stop`, chromedp.ByQuery), reads(`#start`, "Stop"),
		chromedp.Poll(points+` > 3`, nil), // the second click has not stopped it
		chromedp.WaitNotVisible(`#notice`, chromedp.ByQuery),
		press(`#start.stop`),
		reads(`#status`, "Stopped."), reads(`#start`, "Start"), reads(`#part-results tbody tr`, "stopped"),
	)
}

// TestKeptForm checks that the form keeps its values when the language changes.
func TestKeptForm(t *testing.T) {
	tab := browser(t)
	do(t, tab,
		chromedp.Navigate(address("/")),
		choose("zk"),
		press(`#load summary`),
		setValue(`input[name=stock]`, ""),
		chromedp.SendKeys(`input[name=stock]`, "77\t", chromedp.ByQuery),
		press(`.language button[value=zh]`),
		reads(`h1`, "哪些锁会超卖"),
	)
	// Only scripts: the browser may still replace the nodes of the English page.
	var form string
	for form != "77 zk" {
		err := chromedp.Run(tab, chromedp.Evaluate(`document.querySelector('input[name=stock]').value + ' ' +
			[...document.querySelectorAll('input[name=strategy]:checked')].map(box => box.value)`, &form))
		if tab.Err() != nil {
			t.Fatalf("stock and strategies are %q: %v", form, err)
		}
	}
}

// TestMarkupIsText: markup in a product code is shown as text and does not change the page.
func TestMarkupIsText(t *testing.T) {
	db, err := sql.Open("mysql", testLab.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var before string
	if err := db.QueryRowContext(t.Context(), "SELECT product_code FROM db_stock WHERE id = 1").Scan(&before); err != nil {
		t.Fatal(err)
	}
	name := func(code string) {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), "UPDATE db_stock SET product_code = ? WHERE id = 1", code); err != nil {
			t.Error(err)
		}
	}
	const evil = `<img src=x onerror="document.title='hurt'"><b>&amp;`
	name(evil)
	defer name(before)
	tab := browser(t)
	var images int
	var title string
	do(t, tab,
		chromedp.Navigate(address("/")),
		choose("atomic"),
		load("loops", "2"),
		press(`button.go`),
		reads(`#status`, evil),
		reads(`#status`, "Finished."),
		chromedp.Evaluate(`document.images.length`, &images),
		chromedp.Title(&title),
	)
	if images > 0 || title == "hurt" {
		t.Errorf("%d images, the title is %q", images, title)
	}
}

// TestOneReplica runs mutex on the first replica only. The lease is not sent, as mutex has none.
func TestOneReplica(t *testing.T) {
	do(t, browser(t),
		chromedp.Navigate(address("/")),
		choose("mutex"),
		load("loops", "2", "lease", "3000"),
		setValue(`select[name=replicas]`, "1"),
		press(`button.go`),
		reads(`#part-results .sentences li`, "mutex: 200 sold, 4800 left, no update lost, as its card says for one replica."),
	)
}

// TestBothLanguages checks that a Chinese browser gets the page in Chinese. After a click on the
// button for English, the page is in English, even after a reload.
func TestBothLanguages(t *testing.T) {
	const one = "strategy=atomic&clients=1&loops=1&stock=1&hold=0&wait=0"
	if status, body := send(t, http.MethodPost, "/dash/run/start", one, authorized()); status != http.StatusNoContent {
		t.Fatalf("the run was not started: %d %s", status, body)
	}
	tab := browser(t, "zh-CN")
	do(t, tab,
		chromedp.Navigate(address("/")),
		reads(`h1`, "哪些锁会超卖"),
		reads(`#part-results tbody tr`, "atomic"),
		reads(`#part-results caption`, "点击表头排序"),
	)
	pictures(t, tab, "run-zh")
	do(t, tab,
		press(`button[data-post="/dash/run/forget"]`),
		reads(`#part-results`, "每种策略结束后"),
		press(`.language button[value=en]`),
		reads(`h1`, "Which locks oversell?"),
		chromedp.Reload(),
		reads(`h1`, "Which locks oversell?"),
	)
}

// TestSecondPage opens a second page during a run. The second page must also show the earlier
// points of the run. Another start is rejected with the name of the running job. The second page's button ends it.
func TestSecondPage(t *testing.T) {
	one, two := browser(t), browser(t)
	do(t, one,
		chromedp.Navigate(address("/")),
		choose("db-row-naive"),
		load("hold", "50", "wait", "60000"),
		press(`button.go`),
		reads(`#status`, "The lock is held by replica-"),
	)
	var begins int
	do(t, two,
		chromedp.Navigate(address("/")),
		chromedp.WaitVisible(`#verdicts .line.left`, chromedp.ByQuery),
		chromedp.Evaluate(points, &begins),
	)
	status, body := send(t, http.MethodPost, "/dash/run/start", "strategy=atomic&clients=1&loops=1&stock=1&hold=0&wait=0", authorized())
	if status != http.StatusConflict || !strings.Contains(body, "127.0.0.1 has been running db-row-naive since") {
		t.Errorf("a second start: %d %s", status, body)
	}
	do(t, two, press(`#start.stop`), reads(`#part-results tbody tr`, "stopped"))
	if begins < 2 {
		t.Errorf("it begins with %d points", begins)
	}
	do(t, one, reads(`#part-results tbody tr`, "stopped"))
}

// exchange sends a request, and returns the status and the body of the answer.
func exchange(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestLanguageRedirects checks that the answer sets the cookie lang, and never redirects to another host.
func TestLanguageRedirects(t *testing.T) {
	for _, back := range []string{"/dash/break/pause/redis?fenced=true", "//elsewhere.example", "https://elsewhere.example", `/\elsewhere.example`, "/\t/elsewhere.example", "\t//elsewhere.example", "/\n/elsewhere.example", "/\x00/elsewhere.example"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, testLab.Addresses().Target+"/dash/language", strings.NewReader(url.Values{"lang": {"zh"}, "back": {back}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		want := "/"
		if strings.Contains(back, "fenced") {
			want = back // a page of ours, with its query
		}
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != want || len(res.Cookies()) != 1 || res.Cookies()[0].Name != "lang" {
			t.Errorf("back to %s: %d, %v", back, res.StatusCode, res.Header)
		}
	}
}
