package dash_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/lab/rig/rigtest"
)

// grid is a script that describes what the matrix shows.
const grid = `(() => {
	const seen = el => el.checkVisibility({ visibilityProperty: true }), all = q => [...document.querySelectorAll(q)].filter(seen);
	const table = document.querySelector('.matrix table').getBoundingClientRect();
	return {
		rows: all('.matrix tbody tr:not(.family)').length, columns: all('.matrix thead th').length - 1,
		families: all('.matrix .family').length, verdicts: all('.matrix .word:is(.safe, .harm, .cost, .doubt) span').length,
		first: document.querySelector('.matrix tbody th').innerText,
		stops: all('.matrix a, .matrix button, .matrix [tabindex]').filter(el => el.tabIndex >= 0).length,
		bottom: table.bottom, right: table.right, found: document.querySelector('#found').textContent,
		at: document.activeElement.id, cell: document.querySelector('#cell').textContent, search: location.search,
		unnamed: all('.matrix td a').filter(el => !el.innerText.includes(', ')).length,
	};
})()`

type gridState struct {
	Rows, Columns, Families, Verdicts, Stops, Unnamed int
	Bottom, Right                                     float64
	First, Found, At, Cell, Search                    string
}

func readGrid(t *testing.T, tab window) (g gridState) {
	t.Helper()
	do(t, tab, chromedp.Evaluate(grid, &g))
	return g
}

// TestBreakGrid opens the matrix on a small projector, in colour, and moves with the arrow keys.
func TestBreakGrid(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	do(t, tab, chromedp.Navigate(address("/dash/break")), chromedp.EmulateViewport(1280, 800), chromedp.WaitVisible(`[data-live] .matrix td`, chromedp.ByQuery))
	g := readGrid(t, tab)
	if g.Rows != 8 || g.Columns != 8 || g.Families != 0 || g.Verdicts < 8*4 || g.Unnamed != 0 {
		t.Errorf("the matrix opens with %+v", g)
	}
	if g.Stops != 1 {
		t.Errorf("the matrix has %d tab stops", g.Stops)
	}
	if g.Bottom > 800 || g.Right > 1280 {
		t.Errorf("the matrix ends at %v x %v, outside a screen of 1280 x 800", g.Right, g.Bottom)
	}
	do(t, tab, press(`#projector`))
	var smallest float64
	do(t, tab, chromedp.Evaluate(`Math.min(...[...document.querySelectorAll('main *')].filter(el => el.offsetParent && el.localName !== 'i' && el.innerText?.trim()).map(el => parseFloat(getComputedStyle(el).fontSize)))`, &smallest))
	if g = readGrid(t, tab); g.Rows != 8 || g.Columns != 8 || g.Bottom > 800 || g.Right > 1280 || smallest < 22 {
		t.Errorf("on a projector the smallest text is %v px, and the matrix is %+v", smallest, g)
	}
	do(t, tab, press(`#projector`), chromedp.EmulateViewport(1920, 1080))
	if g = readGrid(t, tab); g.Right < 1850 || g.Bottom > 1080 {
		t.Errorf("on a wide screen the matrix ends at %v x %v", g.Right, g.Bottom)
	}

	// The last check box of the filter is before the grid, and two links.
	do(t, tab, focus(`#hide`), keys(kb.Tab, kb.Tab, kb.Tab))
	for _, step := range []struct{ key, at, cell string }{
		{"", "race.none", "none, race: two requests in one process"},
		{kb.ArrowRight, "replica-race.none", "replica-race"},
		{kb.ArrowDown, "replica-race.mutex", "mutex, replica-race"},
		{kb.Home, "", "replica-race"},
		{kb.End, "", "mutex, cutoff"},
	} {
		if step.key != "" {
			do(t, tab, chromedp.KeyEvent(step.key))
		}
		if g := readGrid(t, tab); step.at != g.At || !strings.Contains(g.Cell, step.cell) || g.Stops != 1 {
			t.Errorf("after the key %q: %+v, want %s and %q", step.key, g, step.at, step.cell)
		}
	}
}

// TestBreakFilter searches, sorts by a hazard, and shows all. The address keeps the filter.
func TestBreakFilter(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	do(t, tab, chromedp.Navigate(address("/dash/break")), look(1280, "light"), chromedp.WaitReady(`[data-live]`, chromedp.ByQuery))
	do(t, tab, press(`#sort-pause`), reads(`#found`, "2 of 8 survive pause"))
	if g := readGrid(t, tab); g.First != "for-update" || g.Verdicts < 8*4 {
		t.Errorf("sorted by pause: %+v", g)
	}
	do(t, tab, focus(`[name=q]`), chromedp.KeyEvent("redis pause"), lastColumn("pause-at-read", 2))
	g := readGrid(t, tab)
	if g.Rows < 15 || g.Rows > 30 || g.Columns != 2 || g.At != "" || !strings.Contains(g.Search, "q=redis+pause") {
		t.Errorf("redis pause: %+v", g)
	}
	do(t, tab, setValue(`[name=q]`, "zzz"), reads(`#found`, "No lock or hazard matches"))
	do(t, tab, setValue(`[name=q]`, ""), press(`[name=all]`), chromedp.WaitReady(link("split-brain.redis"), chromedp.ByQuery))
	if g = readGrid(t, tab); g.Rows < 40 || g.Columns < 42 || g.First == "none" {
		t.Errorf("all, sorted by pause: %+v", g)
	}
	do(t, tab, press(`#sort-pause`), chromedp.WaitReady(`.matrix .family`, chromedp.ByQuery))
	if g = readGrid(t, tab); g.Rows < 60 || g.Families != 5 {
		t.Errorf("all: %+v", g)
	}
	if rigtest.IsNightly() { // it takes half a minute; TestPages checks the basics
		accessible(t, tab, axe(t), "the whole matrix")
	}
	pictures(t, tab, "break-all")
	do(t, tab, press(`.language button[value=zh]`), reads(`h1`, "哪种故障会破坏哪把锁"), chromedp.WaitReady(`[data-live]`, chromedp.ByQuery)) // the page is long
	if chinese := readGrid(t, tab); !strings.Contains(chinese.Search, "all=on") || chinese.Rows < 60 {
		t.Errorf("the Chinese page has lost the filter: %+v", chinese)
	}
	pictures(t, tab, "break-zh")
	do(t, tab, press(`[name=all]`), setValue(`[name=q]`, "停顿超过"), lastColumn("pause-at-read", 2)) // of two titles
}

// lastColumn waits until the matrix has n columns of hazards, and the last one is of this hazard.
func lastColumn(hazard string, n int) chromedp.Action {
	return chromedp.WaitReady(fmt.Sprintf(`.matrix thead th:nth-child(%d):last-child[data-hazard=%q]`, n+1, hazard), chromedp.ByQuery)
}

// TestPredict hides the verdicts, opens a result and predicts, with the keys alone. Then the verdict and the
// picture are in view.
func TestPredict(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	do(t, tab, chromedp.Navigate(address("/dash/break")), chromedp.EmulateViewport(1280, 800), chromedp.WaitReady(`[data-live]`, chromedp.ByQuery))
	do(t, tab, tabTo(`#hide`), keys(" "), chromedp.WaitReady(`#hide:checked`, chromedp.ByQuery))
	if g := readGrid(t, tab); g.Verdicts != 0 || g.Search != "" && g.Search != "?hide=on" {
		t.Errorf("with hidden verdicts: %+v", g)
	}
	do(t, tab, chromedp.Poll(`location.search === '?hide=on'`, nil), chromedp.Reload(), chromedp.WaitReady(`[data-live]`, chromedp.ByQuery), press(`#sort-pause`), reads(`#found`, "Show the verdicts first"))
	if g := readGrid(t, tab); g.Verdicts != 0 || g.First != "none" {
		t.Errorf("with hidden verdicts, after a reload: %+v", g)
	}
	var spoiled bool
	do(t, tab, focus(link("pause.redis")), keys(kb.Enter), reads(`h1`, "Will redis survive pause?"),
		chromedp.Evaluate(`/broken|two holders|sold/.test(document.querySelector('main').textContent)`, &spoiled))
	if spoiled {
		t.Error("the page tells the verdict before the prediction")
	}
	do(t, tab, tabTo(`[value=survives]`), keys(kb.Enter), reads(`.verdict`, "redis is broken"), reads(`.verdict`, "Your prediction was wrong"),
		visible(`.verdict`), visible(`#film`), reads(`#result`, "What to look for: two holders"))
	steady(t, tab)
	pictures(t, tab, "predicted")
	do(t, tab, press(`[data-matrix]`), chromedp.WaitReady(`#hide:checked`, chromedp.ByQuery))
}

// TestFence adds a fencing token to a broken result, and compares both: side by side, or below each other.
func TestFence(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	var spoiled bool
	do(t, tab, chromedp.Navigate(address("/dash/break/pause/redis")), chromedp.WaitReady(`[data-live]`, chromedp.ByQuery))
	do(t, tab, chromedp.EmulateViewport(1280, 800), tabTo(`.next a`), keys(kb.Enter), reads(`h1`, "Will redis with a fencing token survive pause?"),
		press(`[value=survives]`), reads(`.verdict`, "Your prediction was right"),
		chromedp.Evaluate(`document.querySelector('main').textContent.includes('What to look for')`, &spoiled))
	if spoiled {
		t.Error("a result without harm tells where to look for the harm")
	}
	var at [2]struct{ X, Y float64 } // of the pictures
	where := chromedp.Evaluate(`[...document.querySelectorAll('.sides .ladder')].map(e => e.getBoundingClientRect().toJSON())`, &at)
	do(t, tab, press(`.next a[href*=both]`), chromedp.WaitVisible(`.sides .ladder`, chromedp.ByQuery), chromedp.WaitReady(`[data-live]`, chromedp.ByQuery), where) // with its style
	if at[1].X < 600 || at[1].Y > 800 {
		t.Errorf("the pictures are not side by side: at %v", at)
	}
	accessible(t, tab, axe(t), "two results side by side")
	pictures(t, tab, "both")
	do(t, tab, look(390, "light"), where)
	if at[1].Y < at[0].Y+100 {
		t.Errorf("on a telephone the pictures are not below each other: at %v", at)
	}
}
