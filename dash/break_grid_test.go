package dash_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/lab/rig/rigtest"
)

// grid is a script that describes what the matrix shows.
const grid = `(() => {
	const seen = el => el.offsetParent !== null, all = q => [...document.querySelectorAll(q)].filter(seen);
	const table = document.querySelector('.matrix table').getBoundingClientRect();
	return {
		rows: all('.matrix tbody tr:not(.family)').length, columns: all('.matrix thead th').length - 1,
		families: all('.matrix .family').length, recorded: all('.matrix .recorded').length,
		stops: all('.matrix a, .matrix button, .matrix [tabindex]').filter(el => el.tabIndex >= 0).length,
		bottom: table.bottom, right: table.right, count: document.querySelector('#count').textContent,
		at: document.activeElement.id, cell: document.querySelector('#cell').textContent, search: location.search,
		unnamed: all('.matrix td button, .matrix td a').filter(el => !el.innerText.includes(', ')).length,
	};
})()`

type gridState struct {
	Rows, Columns, Families, Recorded, Stops, Unnamed int
	Bottom, Right                                     float64
	Count, At, Cell, Search                           string
}

func readGrid(t *testing.T, tab window) (g gridState) {
	t.Helper()
	do(t, tab, chromedp.Evaluate(grid, &g))
	return g
}

// TestBreakGrid opens the matrix on a small projector, shows the recorded verdicts, asks which locks
// survive a pause, and moves with the arrow keys.
func TestBreakGrid(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	do(t, tab, chromedp.Navigate(address("/dash/break")), look(1280, "light"), chromedp.WaitVisible(`[data-live] .matrix .basic`, chromedp.ByQuery))
	g := readGrid(t, tab)
	if g.Rows != 8 || g.Columns != 8 || g.Families != 0 || g.Recorded != 0 || g.Unnamed != 0 {
		t.Errorf("the matrix opens with %+v", g)
	}
	if g.Stops != 1 {
		t.Errorf("the matrix has %d tab stops", g.Stops)
	}
	if g.Bottom > 800 || g.Right > 1280 {
		t.Errorf("the matrix ends at %v x %v, outside a screen of 1280 x 800", g.Right, g.Bottom)
	}
	do(t, tab, press(`#recorded`), chromedp.WaitVisible(`.basic .recorded`, chromedp.ByQuery))
	if g = readGrid(t, tab); g.Recorded < 8*4 || !strings.Contains(g.Search, "recorded=on") {
		t.Errorf("after the class asked for the recorded verdicts: %+v", g)
	}
	do(t, tab, chromedp.EmulateViewport(1280, 800), press(`#projector`))
	var smallest float64
	do(t, tab, chromedp.Evaluate(`Math.min(...[...document.querySelectorAll('main *')].filter(el => el.offsetParent && el.localName !== 'i' && el.innerText?.trim()).map(el => parseFloat(getComputedStyle(el).fontSize)))`, &smallest))
	if g = readGrid(t, tab); g.Rows != 8 || g.Columns != 8 || g.Bottom > 800 || g.Right > 1280 || smallest < 22 {
		t.Errorf("on a projector the smallest text is %v px, and the matrix is %+v", smallest, g)
	}
	do(t, tab, press(`#projector`))

	// The last check box of the filter is before the grid.
	do(t, tab, focus(`#claims`), chromedp.KeyEvent(kb.Tab))
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

	do(t, tab, setValue(`select[name=hazard]`, "pause"), changed(`select[name=hazard]`))
	if g = readGrid(t, tab); g.Rows != 2 || g.Count != "2 rows" { // for-update and version
		t.Errorf("of the basics, a pause is survived by %+v", g)
	}
	do(t, tab, press(`#all`))
	if g = readGrid(t, tab); g.Rows < 20 || g.Columns < 26 || g.Families != 4 { // no lock of one process
		t.Errorf("of all, a pause is survived by %+v", g)
	}
	// The address keeps the filter, and the stream does not undo it.
	do(t, tab, chromedp.Reload(), chromedp.WaitVisible(`[data-live] .matrix .asked`, chromedp.ByQuery))
	if again := readGrid(t, tab); again.Rows != g.Rows || again.Recorded != g.Recorded {
		t.Errorf("after a reload %+v, want %+v", again, g)
	}
	if rigtest.IsNightly() { // it takes half a minute; TestPages checks the basics
		accessible(t, tab, axe(t), "the whole matrix with recorded verdicts")
	}
	pictures(t, tab, "break-all")
	do(t, tab, press(`.language button[value=zh]`), reads(`h1`, "哪种故障会破坏哪把锁"), press(`#all`))
	if chinese := readGrid(t, tab); !strings.Contains(chinese.Search, "hazard=pause") || chinese.Count != "2 行" {
		t.Errorf("the Chinese page has lost the filter: %+v", chinese)
	}
	pictures(t, tab, "break-zh")
}

// changed tells the page that the value of a field has changed.
func changed(selector string) chromedp.Action {
	return chromedp.Evaluate(`document.querySelector('`+selector+`').dispatchEvent(new Event('change', { bubbles: true }))`, nil)
}
