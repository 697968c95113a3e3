package cli_test

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"oversell/api"
	"oversell/lab/rig/rigtest"
	"oversell/locks/catalog"
)

// maxSite is the size limit of the site, in bytes.
const maxSite = 15_000_000

// TestSite writes the site, and opens its pages from files in a browser without a network.
func TestSite(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "site")
	cmd := exec.CommandContext(t.Context(), built(), "site", folder)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	checkFiles(t, folder)
	for file, want := range map[string]string{
		"index.html": `<a href="course/00-one-minute.html">`, "course/00-one-minute.html": "One minute",
		"zh/index.html": `<a href="course/00-one-minute.html">`, "zh/course/00-one-minute.html": `<a href="01-overselling.html">`,
	} {
		if text := read(t, filepath.Join(folder, file)); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", file, want, text)
		}
	}
	tab, requests := offline(t)
	cards := catalog.Cards()
	if !rigtest.IsNightly() {
		cards = cards[:3]
	}
	stepEach(t, tab, "file://"+folder, cards)
	stepEach(t, tab, "file://"+folder+"/zh", cards[:min(5, len(cards))]) // with the same code and script
	loseAnUpdate(t, tab, "file://"+folder)
	solve(t, tab, "file://"+folder)
	urls := requests()
	if len(urls) < len(cards) {
		t.Errorf("%d requests were seen, fewer than the pages that were opened", len(urls))
	}
	for _, url := range urls {
		if !strings.HasPrefix(url, "file://"+folder) && !strings.HasPrefix(url, "data:") {
			t.Errorf("the site requested %s", url)
		}
	}
}

var (
	siteLink   = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	siteAnchor = regexp.MustCompile(`id="([^"]*)"`)
)

// checkFiles checks the size of the site, and that each link leads to one of its files.
func checkFiles(t *testing.T, folder string) {
	t.Helper()
	size, anchors := int64(0), map[string][]string{} // by file
	var pages []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		anchors[path] = nil
		if filepath.Ext(path) == ".html" {
			pages = append(pages, path)
			for _, id := range siteAnchor.FindAllStringSubmatch(read(t, path), -1) {
				anchors[path] = append(anchors[path], id[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > maxSite {
		t.Errorf("the site has %d bytes, more than %d", size, maxSite)
	}
	for _, page := range pages {
		for _, link := range siteLink.FindAllStringSubmatch(read(t, page), -1) {
			name, anchor, _ := strings.Cut(link[1], "#")
			file := filepath.Join(filepath.Dir(page), name)
			if name == "" {
				file = page
			}
			ids, there := anchors[file]
			if name != "data:," && (!there || anchor != "" && !slices.Contains(ids, anchor)) {
				t.Errorf("%s: the link %s leads nowhere", page, link[1])
			}
		}
	}
}

// window is a tab of a browser.
type window interface{ context.Context }

// offline opens a browser without a network. requests returns the addresses of all its requests.
func offline(t *testing.T) (tab window, requests func() []string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(rigtest.Chromium(t)), chromedp.NoSandbox)
	options = append(options, chromedp.WSURLReadTimeout(2*time.Minute)) // 20 s are too short on a busy machine
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	var lock sync.Mutex
	var urls []string
	chromedp.ListenTarget(tab, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			lock.Lock()
			defer lock.Unlock()
			urls = append(urls, sent.Request.URL)
		}
	})
	if err := chromedp.Run(tab, network.Enable(), network.EmulateNetworkConditions(true, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	limited, cancelLimit := context.WithTimeout(tab, 5*time.Minute)
	t.Cleanup(cancelLimit)
	return limited, func() []string {
		lock.Lock()
		defer lock.Unlock()
		return slices.Clone(urls)
	}
}

// script evaluates a script on a page of the site.
func script(t *testing.T, tab window, page, js string) (result string) {
	t.Helper()
	if err := chromedp.Run(tab, chromedp.Navigate(page), chromedp.Evaluate(js, &result)); err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return result
}

// stepped returns the lines of both clients that are done, and the Go code.
const stepped = `[...document.querySelectorAll('.program .done')].map(li => li.textContent).join('\n') + '\n\n' +
	document.querySelector('.listing').textContent`

// stepEach takes the first step of A and of B in each strategy, and checks that the code is shown.
func stepEach(t *testing.T, tab window, root string, cards []api.Card) {
	t.Helper()
	for _, c := range cards {
		page := fmt.Sprintf("%s/step/%s.html", root, c.ID)
		seen := script(t, tab, page, `document.querySelector('#go-a').click(); document.querySelector('#go-b').click(); `+stepped)
		steps, code, _ := strings.Cut(seen, "\n\n")
		if len(strings.Split(steps, "\n")) < 2 || !strings.Contains(code, "package ") {
			t.Errorf("%s: a and b led to %q, want a step of each; the code has %d bytes", page, steps, len(code))
		}
	}
}

// loseAnUpdate plays none until an update is lost, with the keys of the keyboard.
func loseAnUpdate(t *testing.T, tab window, root string) {
	t.Helper()
	for folder, want := range map[string]string{"/": "✗ 2 sold, 1 taken from stock", "/zh/": "✗ 售出 2 件，库存减少 1 件"} {
		var quiet, at, row, sentence, guessed, last, sent, list string
		err := chromedp.Run(
			tab,
			chromedp.Navigate(root+folder+"step/none.html"),
			chromedp.Click(`#guess-8`),
			chromedp.KeyEvent("ab"),
			chromedp.TextContent(`.listing .at`, &at, chromedp.ByQuery),
			chromedp.KeyEvent("uuabab"), // u takes a move back
			chromedp.KeyEvent("a"),
			chromedp.Text(`main`, &quiet),
			chromedp.KeyEvent("b"),
			chromedp.Text(`.sentence`, &sentence),
			chromedp.Text(`#last`, &last),
			chromedp.KeyEvent("ab"),
			chromedp.TextContent(`#part-B .done:nth-child(3) .sent`, &sent, chromedp.ByQuery),
			chromedp.Text(`#part-row`, &row),
			chromedp.Text(`#guessed`, &guessed),
			chromedp.TextContent(`#order tbody tr:last-child`, &list, chromedp.ByQuery),
		)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(sentence, want) || !strings.Contains(row, "9") || !strings.Contains(guessed, "✗") || !strings.Contains(at, "if item.Count < o.Qty") {
			t.Errorf("none ended with %q, %q, %q, want %q; the marked line was %q", row, sentence, guessed, want, at)
		}
		if !strings.Contains(last, "6") || !strings.HasPrefix(list, "8B") || !strings.Contains(sent, "UPDATE db_stock SET count = 9 WHERE id = 1") {
			t.Errorf("the update was lost with %q, want move 6; the last move is %q, want 8 of B; B sent %q", last, list, sent)
		}
		for _, answer := range []string{"rders left", "Fewest", "Solution", "余下的顺序", "最少步数", "答案"} {
			if strings.Contains(quiet, answer) {
				t.Errorf("the page says %q before Hint is pressed:\n%s", answer, quiet)
			}
		}
	}
}

// solve checks the solution of a strategy that loses an update, and of one that does not.
func solve(t *testing.T, tab window, root string) {
	t.Helper()
	for id, check := range map[string][2]string{
		"mutex": {`document.querySelector('#solve').click(); document.querySelector('#said').textContent`, "lose an update: 1"},
		"redis": {`document.querySelector('#hint').click(); document.querySelector('#ahead').innerText`, "No order of these steps loses an update"},
	} {
		if said := script(t, tab, root+"/step/"+id+".html", check[0]); !strings.Contains(said, check[1]) {
			t.Errorf("the solution of %s is %q, want %q", id, said, check[1])
		}
	}
}
